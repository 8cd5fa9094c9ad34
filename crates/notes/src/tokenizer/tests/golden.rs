//! The terms of a note in each language, line by line.
//!
//! Terms are stored in the index, and compared with those of queries byte by byte. If one of these
//! snapshots changes, every index must be rebuilt: increment the format version of the index.

use crate::Note;
use crate::tokenizer::{Language, each_term, variants};

/// Returns a note with the terms of each line below it, and its variants at the end.
fn tokenized(text: &str, language: Language) -> String {
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut terms = Vec::new();
        each_term([line], language, |term| terms.push(term.to_owned()));
        lines.extend([line.to_owned(), format!("    {}", terms.join(" "))]);
    }
    lines.push("variants".to_owned());
    let variants: Vec<_> = variants([text], language).into_iter().collect();
    lines.extend(variants.chunks(12).map(|some| format!("    {}", some.join(" "))));
    lines.join("\n")
}

macro_rules! golden {
    ($($name:ident = $language:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            let text = include_str!(concat!("corpus/", stringify!($name), ".txt"));
            assert_eq!(Note::parse("/a.md", text).language, Language::$language);
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "corpus" }, {
                insta::assert_snapshot!(stringify!($name), tokenized(text, Language::$language));
            });
        }
    )*};
}

golden!(
    czech = Czech,
    danish = Danish,
    dutch = Dutch,
    english = English,
    finnish = Finnish,
    french = French,
    german = German,
    greek = Greek,
    hungarian = Hungarian,
    italian = Italian,
    norwegian = Norwegian,
    polish = Polish,
    portuguese = Portuguese,
    romanian = Romanian,
    russian = Russian,
    spanish = Spanish,
    swedish = Swedish,
    ukrainian = Ukrainian,
);
