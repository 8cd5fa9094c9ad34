//! The Porter stemmer: its published examples, the forms of common words, and its reference.

use frostem::{Algorithm, Stemmer};
use proptest::prelude::*;

use super::stem;
use crate::tokenizer::irregular;

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (word, expected) in cases {
        assert_eq!(stem(word), *expected, "{word}");
    }
}

#[test]
fn the_forms_of_a_word_have_one_stem() {
    for forms in [
        "connect connected connecting connection connections connective",
        "deploy deploys deployed deploying deployment deployments",
        "decision decisions",
        "cache caches cached caching",
        "query queries querying queried",
        "hop hops hopped hopping",
        "hope hopes hoped hoping",
        "relate related relates relating",
        "go goes going gone went",
        "buy buys buying bought",
        "child children",
        "write writing wrote written writes",
        "policy policies",
        "index indexing indexed indexes",
        "configure configured configuring configuration configurations",
        "migrate migration migrations migrating migrated",
        "database databases",
        "note notes noted noting",
        "session sessions",
        "run runs running ran",
        "think thinks thinking thought",
        "test tests tested testing",
        "begin begins beginning began begun",
        "man men",
        "foot feet",
        "mouse mice",
    ] {
        let stems: Vec<_> = forms.split(' ').map(stem).collect();
        assert!(stems.iter().all(|it| *it == stems[0]), "{forms}: {stems:?}");
    }
}

#[test]
fn similar_words_keep_different_stems() {
    for words in ["tea tee", "hop hope", "plan plane", "part party", "comma command", "port portal"]
    {
        let (first, second) = words.split_once(' ').unwrap();
        assert_ne!(stem(first), stem(second), "{words}");
    }
}

#[test]
fn plurals() {
    check(&[
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("ties", "ti"),
        ("caress", "caress"),
        ("cats", "cat"),
        ("boss", "boss"),
        ("bus", "bu"),
    ]);
}

#[test]
fn past_and_progressive_forms() {
    check(&[
        ("feed", "feed"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("bled", "bled"),
        ("motoring", "motor"),
        ("sing", "sing"),
        ("conflated", "conflat"),
        ("troubled", "troubl"),
        ("sized", "size"),
        ("hopping", "hop"),
        ("tanned", "tan"),
        ("falling", "fall"),
        ("hissing", "hiss"),
        ("fizzed", "fizz"),
        ("failing", "fail"),
        ("filing", "file"),
    ]);
}

#[test]
fn a_final_y_after_a_consonant_becomes_i() {
    check(&[
        ("happy", "happi"),
        ("sky", "sky"),
        ("query", "queri"),
        ("deploy", "deploy"),
        ("key", "key"),
        ("day", "day"),
        ("by", "by"),
    ]);
}

#[test]
fn long_endings() {
    check(&[
        ("relational", "relat"),
        ("conditional", "condit"),
        ("rational", "ration"),
        ("valency", "valenc"),
        ("hesitancy", "hesit"),
        ("digitizer", "digit"),
        ("conformably", "conform"),
        ("radically", "radic"),
        ("differently", "differ"),
        ("vilely", "vile"),
        ("analogously", "analog"),
        ("vietnamization", "vietnam"),
        ("predication", "predic"),
        ("operator", "oper"),
        ("feudalism", "feudal"),
        ("decisiveness", "decis"),
        ("hopefulness", "hope"),
        ("callousness", "callous"),
        ("formality", "formal"),
        ("sensitivity", "sensit"),
        ("sensibility", "sensibl"),
        ("analogy", "analog"),
        ("possibly", "possibl"),
    ]);
}

#[test]
fn middle_endings() {
    check(&[
        ("triplicate", "triplic"),
        ("formative", "form"),
        ("formalize", "formal"),
        ("electricity", "electr"),
        ("electrical", "electr"),
        ("hopeful", "hope"),
        ("goodness", "good"),
    ]);
}

#[test]
fn last_endings() {
    check(&[
        ("revival", "reviv"),
        ("allowance", "allow"),
        ("inference", "infer"),
        ("airliner", "airlin"),
        ("gyroscopic", "gyroscop"),
        ("adjustable", "adjust"),
        ("defensible", "defens"),
        ("irritant", "irrit"),
        ("replacement", "replac"),
        ("adjustment", "adjust"),
        ("dependent", "depend"),
        ("adoption", "adopt"),
        ("communism", "commun"),
        ("activate", "activ"),
        ("angularity", "angular"),
        ("homologous", "homolog"),
        ("effective", "effect"),
        ("bowdlerize", "bowdler"),
    ]);
}

#[test]
fn a_final_e_and_a_double_l_are_dropped() {
    check(&[
        ("probate", "probat"),
        ("rate", "rate"),
        ("cease", "ceas"),
        ("controll", "control"),
        ("roll", "roll"),
        ("cable", "cabl"),
    ]);
}

#[test]
fn irregular_forms_share_the_stem_of_their_base() {
    for (form, base) in irregular::forms() {
        assert_eq!(stem(form), stem(base), "{form}");
        assert_ne!(form, base);
    }
}

#[test]
fn non_english_words_are_unchanged() {
    for word in ["", "a", "is", "v2", "größe", "日本", "Cats", "it's", &"s".repeat(41)] {
        assert_eq!(stem(word), word);
    }
}

/// Returns whether the reference may find another stem: it has no irregular forms, turns every final
/// `y` into `i`, lacks the rules for `bli` and `logi` that Porter added later, and keeps double
/// consonants that English words do not have.
fn is_exception(word: &str) -> bool {
    let parts = ["y", "bli", "logi", "cc", "hh", "jj", "kk", "qq", "vv", "ww", "xx"];
    irregular::base(word).is_some() || parts.iter().any(|part| word.contains(part))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn the_reference_finds_the_same_stems(
        word in "[a-z]{3,8}(ational|tional|izer|ously|iveness|ed|ing|s|es|ies|ment|able|al|ence|ll|e|ion)?|[aeiouy]{1,2}[bcdfghlmnprst]{1,2}[a-z]{0,6}"
    ) {
        if word.len() >= 3 && !is_exception(&word) {
            let reference = Stemmer::new(Algorithm::Porter).stem(&word).into_owned();
            prop_assert_eq!(stem(&word), reference);
        }
    }

    #[test]
    fn every_word_has_a_stem_that_is_no_longer(word in "[a-z]{1,12}") {
        let stem = stem(&word);
        prop_assert!(!stem.is_empty());
        prop_assert!(stem.len() <= word.len() + 1);
        prop_assert!(stem.bytes().all(|byte| byte.is_ascii_lowercase()));
    }
}
