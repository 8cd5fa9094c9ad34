//! Every shape, filled with random characters: in size, too short, too long, and inside of words.

use std::collections::HashMap;

use super::*;
use crate::findings;
use crate::tests::{ALNUM, BASE64, DIGITS, Dice, HEX, UPPER, WORD};

fn alphabet(class: Class) -> &'static str {
    match class {
        Class::Digit => DIGITS,
        Class::Hex | Class::AnyHex => HEX,
        Class::Upper => UPPER,
        Class::Alnum => ALNUM,
        Class::Word | Class::Bearer | Class::Value => WORD,
        Class::Base64 => BASE64,
    }
}

/// Which size the runs of a made-up token have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Least,
    Most,
    BelowLeast,
    AboveMost,
}

/// Longer runs are not worth the time of a test.
const RUN_SIZE_BYTES_MAX: usize = 600;

/// Returns a token of a family whose runs have a size; `None` if there is none of that size.
fn token(family: &Family, prefix: &str, size: Size, dice: &mut Dice) -> Option<String> {
    let mut token = prefix.to_owned();
    for part in family.body {
        match part {
            Part::Run(class, least, most) => {
                let size = match size {
                    Size::Least => *least,
                    Size::Most => *most,
                    Size::BelowLeast => least.checked_sub(1)?,
                    Size::AboveMost => most + 1,
                };
                let run = dice.text(alphabet(*class), size);
                token.push_str(Some(run).filter(|run| run.len() <= RUN_SIZE_BYTES_MAX)?.as_str());
            }
            Part::Text(text) => token.push_str(text),
            Part::Padding => {}
        }
    }
    Some(token)
}

fn each_token(size: Size, mut work: impl FnMut(&Family, &'static str, &str)) {
    let mut dice = Dice::new(11);
    for family in FAMILIES {
        for prefix in family.prefixes {
            for _ in 0..10 {
                if let Some(token) = token(family, prefix, size, &mut dice) {
                    work(family, prefix, &token);
                }
            }
        }
    }
}

/// Returns the kinds and secrets that are found in a text.
fn found(text: &str) -> Vec<(SecretKind, &str)> {
    let found = findings(text).into_iter();
    found.filter_map(|finding| Some((finding.kind, text.get(finding.span)?))).collect()
}

#[test]
fn tokens_of_the_least_and_the_greatest_size_are_found() {
    for size in [Size::Least, Size::Most] {
        let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
        each_token(size, |family, prefix, token| {
            let secret = match family.secret {
                Secret::Whole => token,
                Secret::Body => token.strip_prefix(prefix).unwrap_or_default(),
            };
            let (all, found_count) = counts.entry(prefix).or_default();
            *all += 1;
            *found_count += usize::from(found(token).iter().any(|(_, it)| *it == secret));
        });
        // Now and then random characters look like words.
        for (prefix, (all, found_count)) in counts {
            assert!(found_count * 10 >= all * 8, "{prefix}: {found_count} of {all}");
        }
    }
}

#[test]
fn runs_of_another_size_are_another_thing() {
    for size in [Size::BelowLeast, Size::AboveMost] {
        each_token(size, |family, _, token| {
            for (kind, secret) in found(token) {
                let others = FAMILIES.iter().filter(|it| it.kind == family.kind).count();
                let is_same = kind == family.kind && secret.len() == token.len();
                assert!(!is_same || others > 1, "{kind:?} {token}");
            }
        });
    }
}

#[test]
fn a_token_inside_of_a_word_is_none() {
    each_token(Size::Least, |family, prefix, token| {
        if !prefix.starts_with(|letter: char| letter.is_ascii_alphanumeric()) {
            return;
        }
        for text in [format!("x{token}"), format!("7{token}")] {
            let is_found = found(&text).iter().any(|(kind, _)| *kind == family.kind);
            // What announces a secret may itself be part of a word, as in a URL.
            assert!(!is_found || matches!(family.secret, Secret::Body), "{text}");
        }
    });
}

#[test]
fn a_token_ends_where_its_characters_do() {
    let mut dice = Dice::new(3);
    let github = dice.text(ALNUM, 36);
    for (after, is_found) in [
        ("", true),
        (" ", true),
        (".", true),
        (",", true),
        ("\n", true),
        ("\"", true),
        (")", true),
        ("/", true),
        ("é", true),
        ("_", false),
        ("-x", false),
        ("[", false),
    ] {
        let text = format!("ghp_{github}{after}");
        assert_eq!(!found(&text).is_empty(), is_found, "{text}");
    }
}

#[test]
fn blanks_in_the_shape_of_a_token_are_none() {
    for (prefix, size) in [("ghp_", 36), ("npm_", 36), ("AKIA", 16), ("AIza", 35), ("sk_live_", 24)]
    {
        for blank in ["x", "X", "0", "x0", "XX00"] {
            let body: String = blank.chars().cycle().take(size).collect();
            assert_eq!(found(&format!("{prefix}{body}")), [], "{prefix}{body}");
        }
    }
}

#[test]
fn families_are_well_formed() {
    for family in FAMILIES {
        assert!(!family.prefixes.is_empty() && !family.body.is_empty());
        assert!(family.prefixes.iter().all(|prefix| prefix.is_ascii() && prefix.len() >= 2));
        for part in family.body {
            match part {
                Part::Run(_, least, most) => assert!(least <= most && *least > 0),
                Part::Text(text) => assert!(!text.is_empty()),
                Part::Padding => {}
            }
        }
        // Two runs need something between them that is in neither.
        for pair in family.body.windows(2) {
            assert!(!matches!(pair, [Part::Run(..), Part::Run(..)]), "{:?}", family.kind);
        }
    }
}
