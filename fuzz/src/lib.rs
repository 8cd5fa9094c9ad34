//! What each fuzz target does with its input, and the same with a few inputs that are kept here.
//!
//! Fuzzing needs a nightly toolchain. The tests of this file need none, so `./test` runs them and builds the
//! targets: one that no longer compiles, or that fails at once, is noticed when it happens.

pub use quipu_knowledge::fuzzing::read_any as index;
pub use quipu_vectors::fuzzing::read_any as model;

use quipu_notes::query::{Query, TERMS_MAX};
use quipu_notes::tokenizer::{Language, tokenize, variants};
use quipu_notes::{
    Date, DateSpan, EventReference, Identifier, Note, Phrase, Value, edit, snippet, written_date,
};

/// Any text is a note, and edits of it do not panic.
pub fn note(text: &str) {
    let note = Note::parse("/notes/a.md", text);
    assert!(text.get(note.body.clone()).is_some());
    for link in &note.links {
        assert!(text.get(link.range.clone()).is_some());
        drop(Identifier::from(&link.target));
    }
    for heading in &note.headings {
        drop(edit::replace_section(text, &heading.text, "x"));
    }
    let changes = [("x".to_owned(), Some(Value::Text(text.to_owned())))];
    if let Ok(edited) = edit::set_metadata(text, &changes) {
        assert!(edited.ends_with(&text[note.body.start..]));
    }
}

/// Any text is a query.
pub fn query(text: &str) {
    let query = Query::parse(text);
    assert!(query.terms().len() <= TERMS_MAX);
}

/// Any text may have dates, as a question and as a title.
pub fn dates(text: &str) {
    for today in [Date::MIN, Date::constant(2026, 11, 18), Date::MAX] {
        if let Some(span) = DateSpan::find(text, today) {
            assert!(span.first <= span.last);
        }
        for event in EventReference::all(text) {
            assert!(!event.words.is_empty());
            drop(event.span(today));
        }
    }
    written_date(text);
}

/// Any text can be tokenized in any language, and shown as a snippet.
pub fn tokenizer(text: &str) {
    let query: String = text.chars().take(40).collect();
    for language in Language::ALL.into_iter().chain([Language::detect(text)]) {
        for token in tokenize(text, language) {
            assert!(!token.term.is_empty() && token.term.len() <= 64);
            assert!(text.get(token.range).is_some());
        }
        drop(variants([text], language));
        let phrases = Phrase::spellings(&query, &[Language::English, language]);
        let found = snippet(text, language, &phrases.iter().collect::<Vec<_>>());
        for range in found.matches {
            assert!(found.text.get(range).is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    const TEXTS: [&str; 10] = [
        "",
        "# Tea\n\n- [fact] hot #tag (context)\n- part_of [[Drinks#green|shown]]\n[a](b.md)\n",
        "---\ntitle: [a, {b: c}]\ntags: {x: y}\n---\ntext",
        "---\n: : [broken\n---\n",
        "\u{feff}---\r\nk: v\r\n---\r\n\u{301}x\u{202e}",
        "tea AND (cup OR \"pot of\" NOT tag:x) path:/a/* te* -",
        "((((\"\"\"\" AND OR NOT NOT ) tag: path:",
        "日本語のテキスト parseJson2 foo-bar/baz.rs user's ﬁ İ ß",
        "Die Unterlagen für die Steuererklärung sind nicht vollständig.",
        "[[[[[[]]]]]] `[[x]]` ![[y]] <!-- [[z]] -->",
    ];

    /// Every beginning of every text, so that whatever is open is also left open.
    fn each_text(work: fn(&str)) {
        for text in TEXTS {
            let ends = text.char_indices().map(|(place, _)| place).chain([text.len()]);
            ends.for_each(|end| work(&text[..end]));
        }
    }

    #[test]
    fn texts_are_notes() {
        each_text(super::note);
    }

    #[test]
    fn texts_are_queries() {
        each_text(super::query);
    }

    #[test]
    fn texts_have_dates() {
        each_text(super::dates);
        for text in
            ["before the release of 2.4, last week", "上周之前 3日前", "vor zwei Wochen il y a"]
        {
            super::dates(text);
        }
    }

    #[test]
    fn models_are_read_or_refused() {
        each_text(|text| super::model(text.as_bytes()));
        super::model(br#"{"data":[{"index":0,"embedding":[1e39]}]}"#);
    }

    #[test]
    fn texts_are_tokenized() {
        each_text(super::tokenizer);
    }

    #[test]
    fn bytes_are_read_or_refused() {
        each_text(|text| super::index(text.as_bytes()));
        for byte in 0..=u8::MAX {
            super::index(&[byte; 40]);
            super::index(&[1, byte, 2, byte, 0, 8, byte, byte, byte, 1, 1, 1, byte, 3]);
        }
    }
}
