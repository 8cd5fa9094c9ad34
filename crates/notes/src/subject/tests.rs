use proptest::prelude::*;

use super::*;

fn words(text: &str) -> Vec<&str> {
    let topics = subject_words(text, 100).into_iter();
    topics.filter(|it| it.kind != SubjectKind::Request).map(|it| it.written).collect()
}

#[test]
fn stop_words_courtesy_and_requests_are_no_topics() {
    assert_eq!(words("hello, how are you?"), Vec::<&str>::new());
    assert_eq!(words("Hi! Thanks, can you please help me fix it?"), Vec::<&str>::new());
    assert_eq!(words("Hallo, wie geht es dir? Danke!"), ["geht"]);
    assert_eq!(words("你好吗？"), Vec::<&str>::new());
    assert_eq!(words("Please write a poem about the sea"), ["poem", "sea"]);
}

#[test]
fn inflections_are_one_word_and_frequent_and_long_words_come_first() {
    let found = subject_words("Kettles boil. The kettle boiled; a KETTLE whistles.", 2);
    let found: Vec<_> = found.iter().map(|it| (it.written, it.count)).collect();
    assert_eq!(found, [("Kettles", 3), ("whistles", 1)]);
}

#[test]
fn characters_of_scripts_without_spaces_come_in_pairs() {
    assert_eq!(words("绿茶 green"), ["绿茶", "green"]);
    assert_eq!(words("日本語"), ["日本", "本語"]);
}

#[test]
fn letters_and_keys_are_no_words() {
    let key = "0123456789abcdef".repeat(4);
    assert_eq!(words(&format!("x {key} 42")), ["42"]);
}

#[test]
fn the_lists_are_sorted_and_in_the_form_that_is_compared() {
    assert!(COURTESY.is_sorted());
    assert!(REQUEST.is_sorted());
    for word in COURTESY {
        assert_eq!(folded(word), word);
    }
    for word in REQUEST {
        assert_eq!(stems(word, &[Language::English]), [word]);
    }
}

proptest! {
    #[test]
    fn any_text_has_at_most_as_many_words_as_asked_for(text in any::<String>(), limit in 0_usize..20) {
        let found = subject_words(&text, limit);
        prop_assert!(found.len() <= limit);
        for word in &found {
            prop_assert!(text.contains(word.written));
            prop_assert!(word.count > 0);
        }
        prop_assert_eq!(&found, &subject_words(&text, limit));
    }
}
