use serde_json::json;

use super::*;

fn tokenizer(description: Value) -> Result<Tokenizer, EncodeError> {
    Tokenizer::new(serde_json::from_value(description).unwrap())
}

fn bert(vocabulary: &[&str]) -> Value {
    let vocabulary: HashMap<_, _> = vocabulary.iter().zip(0..).collect();
    json!({
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary}
    })
}

/// Asserts the pieces of a text, by their names.
fn check(text: &str, expected: &[&str]) {
    let vocabulary = [
        "[UNK]", "un", "##able", "##a", "tea", "##s", ",", "茶", "き", "cafe", "[", "]", "cls",
        "i", "¿",
    ];
    let tokenizer = tokenizer(bert(&vocabulary)).unwrap();
    let tokens = tokenizer.tokens(text, usize::MAX);
    let names: Vec<_> = tokens.iter().map(|token| vocabulary[*token as usize]).collect();
    assert_eq!(names, expected, "{text}");
}

#[test]
fn the_longest_piece_is_taken_first() {
    check("unable teas", &["un", "##able", "tea", "##s"]);
    check("una", &["un", "##a"]);
}

#[test]
fn a_word_with_an_unknown_rest_is_one_unknown_token() {
    check("unx tea", &["[UNK]", "tea"]);
    check(&"un".repeat(60), &["[UNK]"]);
}

#[test]
fn case_accents_and_invisible_characters_do_not_matter() {
    check("CAFÉ", &["cafe"]);
    check("cafe\u{301}", &["cafe"]);
    check("te\u{200b}a\u{0}", &["tea"]);
}

#[test]
fn punctuation_and_ideographs_are_words_of_their_own() {
    check("tea,tea", &["tea", ",", "tea"]);
    check("¿tea", &["¿", "tea"]);
    check("茶茶tea", &["茶", "茶", "tea"]);
    check("\ttea\u{a0}\n", &["tea"]);
}

#[test]
fn names_of_special_tokens_are_text() {
    check("[CLS]", &["[", "cls", "]"]);
}

#[test]
fn texts_end_at_the_limit() {
    let tokenizer = tokenizer(bert(&["[UNK]", "tea", "##s"])).unwrap();
    assert_eq!(tokenizer.tokens("teas teas", 3), [1, 2, 1]);
    assert!(tokenizer.tokens("", 3).is_empty());
    assert!(tokenizer.tokens("tea", 0).is_empty());
}

fn llama() -> Value {
    let mut vocabulary: HashMap<String, u32> =
        (0..=u8::MAX).map(|byte| (format!("<0x{byte:02X}>"), 100 + u32::from(byte))).collect();
    for (token, name) in ["<unk>", "▁", "t", "e", "a", "te", "ea", "▁te", "tea"].iter().enumerate()
    {
        vocabulary.insert((*name).to_owned(), u32::try_from(token).unwrap());
    }
    json!({
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        ]},
        "pre_tokenizer": null,
        "model": {
            "type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": vocabulary,
            "merges": ["e a", ["t", "e"], "▁ te", "t ea"]
        }
    })
}

#[test]
fn pairs_are_merged_in_the_order_in_which_they_were_learned() {
    let tokenizer = tokenizer(llama()).unwrap();
    // `e a` comes before `t e`, so `te` never exists here.
    assert_eq!(tokenizer.tokens("tea", usize::MAX), [1, 8]);
    assert_eq!(tokenizer.tokens("te te", usize::MAX), [7, 7]);
    assert_eq!(tokenizer.tokens(" t", usize::MAX), [1, 1, 2]);
    assert!(tokenizer.tokens("", usize::MAX).is_empty());
}

#[test]
fn unknown_characters_are_bytes() {
    let tokenizer = tokenizer(llama()).unwrap();
    assert_eq!(tokenizer.tokens("é", usize::MAX), [1, 100 + 0xc3, 100 + 0xa9]);
}

#[test]
fn other_kinds_are_refused_by_name() {
    let refused = |change: fn(&mut Value)| {
        let mut description = bert(&["[UNK]"]);
        change(&mut description);
        tokenizer(description).unwrap_err().to_string()
    };
    let message = refused(|description| description["model"]["type"] = "Unigram".into());
    assert!(message.contains("`Unigram`"), "{message}");
    let message = refused(|description| description["pre_tokenizer"]["type"] = "Metaspace".into());
    assert!(message.contains("`Metaspace`"), "{message}");
    let message = refused(|description| description["normalizer"] = Value::Null);
    assert!(message.contains("normalizer (`none`)"), "{message}");
    let message = refused(|description| description["model"]["vocab"] = json!({"tea": 0}));
    assert!(message.contains("unknown words"), "{message}");
}
