use proptest::prelude::*;
use quipu_vectors::{EncodeError, Purpose};

use super::*;

/// An encoder that reads some words.
#[derive(Debug)]
struct Words(usize);

impl Encoder for Words {
    fn identity(&self) -> &'static str {
        "words"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn tokens_max(&self) -> usize {
        self.0
    }

    fn tokens(&self, text: &str) -> usize {
        let others = text.chars().filter(|letter| *letter >= '\u{2e80}').count();
        text.split_whitespace().filter(|word| word.is_ascii()).count() + others
    }

    fn encode(&self, _: Purpose, _: &[&str]) -> Result<Vec<Vec<f32>>, EncodeError> {
        Err(EncodeError::new("it encodes nothing"))
    }
}

fn split(title: &str, text: &str) -> Vec<Passage> {
    passages(title, text, &Words(200))
}

fn lines(passages: &[Passage]) -> Vec<(u32, u32)> {
    passages.iter().map(|passage| (passage.lines.first, passage.lines.last)).collect()
}

const TEN_WORDS: &str = "ten words that are the same in every line here\n";

#[test]
fn a_short_memory_is_one_passage_with_its_title() {
    let passages = split("Tea", "---\ntitle: Tea\n---\n\nNever boil it.\nServe it hot.\n");
    assert_eq!(lines(&passages), [(5, 6)]);
    assert_eq!(passages[0].text, "Tea\nNever boil it.\nServe it hot.");
}

#[test]
fn a_memory_without_text_is_its_title() {
    for text in ["", "\n\n", "---\ntitle: Tea\n---\n"] {
        let passages = split("Tea", text);
        assert_eq!(passages.len(), 1);
        assert_eq!(passages[0].text, "Tea");
    }
}

#[test]
fn long_memories_are_split_at_lines() {
    assert_eq!(lines(&split("T", &TEN_WORDS.repeat(50))), [(1, 19), (20, 38), (39, 50)]);
}

#[test]
fn passages_begin_at_headings_and_say_what_they_are_below() {
    let (some, text) = (TEN_WORDS.repeat(12), TEN_WORDS);
    let text = format!("# Trip\n{some}## Hotels\n{some}### Rome\n{some}## Food\n{text}");
    let passages = split("Trip", &text);
    assert_eq!(lines(&passages), [(1, 13), (14, 26), (27, 39), (40, 41)]);
    let begins =
        ["Trip\n# Trip\n", "Trip\n## Hotels\n", "Trip > Hotels\n### Rome\n", "Trip\n## Food\n"];
    for (passage, begin) in passages.iter().zip(begins) {
        assert!(passage.text.starts_with(begin), "{passage:?}");
    }
}

#[test]
fn a_heading_stays_with_the_paragraph_below_it() {
    for words in [185, 198, 205, 450] {
        let paragraph: Vec<_> = (0..words).map(|number| format!("w{number} ")).collect();
        let paragraph = paragraph.concat();
        let section = format!("## Heading\n\n{paragraph}\n\n");
        let passages = split("T", &section.repeat(31));
        for passage in &passages {
            let text = passage.text.strip_prefix("T").expect("the title is first");
            let is_whole = text.starts_with("\n## Heading\nw0 ") && !text.ends_with("Heading");
            assert!(is_whole || text.starts_with(" > Heading\nw"), "{text}");
        }
        let all: String = passages.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(all.matches(&format!("w{} ", words - 1)).count(), 31, "the end is missing");
    }
}

#[test]
fn headings_without_text_are_kept() {
    assert_eq!(split("T", "# T\n## A\n## B\n")[0].text, "T\n# T\n## A\n## B");
    let passages = split("T", &"## A heading of some words\n".repeat(500));
    let kept = passages.iter().map(|it| it.text.matches("## A heading").count()).sum::<usize>();
    assert_eq!(kept, 500);
}

#[test]
fn code_has_no_headings() {
    let text = format!("# A\n```sh\n# boil\nwater\n```\n{}", TEN_WORDS.repeat(30));
    assert!(split("T", &text).iter().all(|it| !it.text.contains("> boil")));
}

#[test]
fn words_that_are_too_long_are_cut() {
    let text = "x".repeat(90_000);
    let passages = split("T", &text);
    let sizes = passages.iter().map(|passage| passage.text.len());
    assert!(sizes.clone().max().unwrap() <= 200 * TOKEN_SIZE_BYTES_MAX, "{sizes:?}");
    let all: usize = passages.iter().map(|it| it.text.matches('x').count()).sum();
    assert_eq!(all, 90_000);
}

#[test]
fn scripts_without_spaces_are_split() {
    let passages = split("T", &"漢字".repeat(1000));
    assert!((10..13).contains(&passages.len()), "{}", passages.len());
    assert_eq!(passages.iter().map(|it| it.text.matches('漢').count()).sum::<usize>(), 1000);
}

#[test]
fn a_long_title_leaves_room_for_the_text() {
    let title = "word ".repeat(1000);
    let passages = split(&title, &TEN_WORDS.repeat(50));
    assert!(passages.len() < 6, "{}", passages.len());
    assert!(passages.iter().all(|it| it.text.contains("ten words")));
}

/// As much prose as a memory can have takes fewer passages than it may have.
#[test]
fn the_end_of_the_longest_memory_is_in_a_passage_of_usual_length() {
    let mut text = TEN_WORDS.repeat(102_400 / TEN_WORDS.len());
    text.push_str("the end of all\n");
    let passages = split("T", &text);
    assert!(passages.len() < PASSAGES_MAX, "{}", passages.len());
    assert!(passages.last().unwrap().text.ends_with("the end of all"));
    let most = passages.iter().map(|it| it.text.split_whitespace().count()).max();
    assert!(most <= Some(200), "{most:?}");
}

#[test]
fn the_number_of_passages_is_bounded_and_the_end_is_in_one() {
    let mut text = "a b c d e f g h\n".repeat(12_000);
    text.push_str("the end of all\n");
    let passages = split("T", &text);
    assert!(passages.len() <= PASSAGES_MAX, "{}", passages.len());
    assert!(passages.last().unwrap().text.ends_with("the end of all"));
}

proptest! {
    /// Whatever the text is, every word is in a passage, and none has more tokens than are read.
    #[test]
    fn no_word_is_lost(
        lines in prop::collection::vec("(#{1,3} )?([a-z]{1,9} ){0,60}|[a-z]{400}|[漢字]{0,99}", 0..20),
        tokens_max in 32_usize..200,
    ) {
        let text = lines.join("\n");
        let encoder = Words(tokens_max);
        let passages = passages("T", &text, &encoder);
        let letters = |text: &str| text.chars().filter(|it| it.is_alphanumeric()).collect::<String>();
        let bodies = passages.iter().filter_map(|it| it.text.split_once('\n')).map(|(_, body)| letters(body));
        prop_assert_eq!(bodies.collect::<String>(), letters(text.get(Note::parse_header(&text).body).unwrap_or_default()));
        for passage in &passages {
            // A word that is cut is counted twice.
            prop_assert!(encoder.tokens(&passage.text) <= tokens_max + 2, "{:?}", passage);
        }
    }
}
