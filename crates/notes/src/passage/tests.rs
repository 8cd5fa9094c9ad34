use super::*;

/// Returns the passage around the only occurrence of a word, as headings and lines.
fn around(text: &str, word: &str) -> Option<(String, usize, usize)> {
    let body = crate::Note::parse_header(text).body;
    let start = text.find(word).expect("the text has the word");
    let passage = Passage::around(text, body, &(start..start + word.len()))?;
    Some((passage.headings.join(" > "), passage.first_line, passage.last_line))
}

const NOTE: &str = "---\ntitle: Tea\n# no heading\n---\n# Tea\n\nAbout leaves\nand water.\n\n\
    ## Brewing\n\nFirst the kettle,\nthen the pot,\nthen patience.\n\n### Times\n\n- two minutes\n\n\
    ## Cups #\n\n```\n# not a heading\n```\nThin ones.\n";

#[test]
fn a_passage_is_a_paragraph_below_its_headings() {
    let found = |word| around(NOTE, word).expect("the note has more");
    assert_eq!(found("leaves"), ("Tea".to_owned(), 7, 8));
    assert_eq!(found("pot,"), ("Tea > Brewing".to_owned(), 12, 14));
    assert_eq!(found("patience"), ("Tea > Brewing".to_owned(), 12, 14));
    assert_eq!(found("minutes"), ("Tea > Brewing > Times".to_owned(), 18, 18));
    assert_eq!(found("Thin"), ("Tea > Cups".to_owned(), 22, 25));
    assert_eq!(found("not a heading"), ("Tea > Cups".to_owned(), 22, 25));
    assert_eq!(found("Times"), ("Tea > Brewing > Times".to_owned(), 16, 16));
}

#[test]
fn a_range_over_several_paragraphs_takes_in_all_of_them() {
    let start = NOTE.find("the pot").expect("it is there");
    let end = NOTE.find("two").expect("it is there");
    let body = crate::Note::parse_header(NOTE).body;
    let passage = Passage::around(NOTE, body, &(start..end + 3)).expect("a passage");
    assert_eq!((passage.first_line, passage.last_line), (12, 18));
    assert_eq!(passage.headings, ["Tea", "Brewing"]);
}

#[test]
fn a_note_of_one_paragraph_is_its_only_passage() {
    for text in ["tea", "# Tea\n\nGreen tea\nis best.\n", "---\na: b\n---\ntea\n\n", "\n\ntea"] {
        let word = if text.contains("best") { "best" } else { "tea" };
        assert_eq!(around(text, word), None, "{text:?}");
    }
    assert_eq!(around("one\n\ntwo", "two"), Some((String::new(), 3, 3)));
    assert_eq!(around("one\n\ntwo", "one"), Some((String::new(), 1, 1)));
}

#[test]
fn any_place_is_answered() {
    for text in ["", "é", "# é\n\né\r\n\r\né", "```\n\n# a\n"] {
        for start in 0..=text.len() + 1 {
            for end in start..=text.len() + 2 {
                let found = Passage::around(text, 0..text.len(), &(start..end));
                let lines = text.lines().count();
                assert!(
                    found.is_none_or(|it| it.first_line <= it.last_line && it.last_line <= lines)
                );
            }
        }
    }
}
