//! Scripts other than Latin.

use super::*;

#[test]
fn chinese_japanese_and_korean_are_bigrams() {
    for (text, expected) in [
        ("茶", "茶"),
        ("日本", "日本"),
        ("日本語", "日本 本語"),
        ("お茶を飲む", "お茶 茶を を飲 飲む"),
        ("コーヒー", "コー ーヒ ヒー"),
        ("ｺｰﾋｰ", "ｺｰ ｰﾋ ﾋｰ"),
        ("녹차를 마신다", "녹차 차를 마신 신다"),
        ("红茶，绿茶。", "红茶 绿茶"),
        ("佐々木", "佐々 々木"),
        ("𠮷野家", "𠮷野 野家"),
    ] {
        assert_eq!(of(text).join(" "), expected, "{text}");
    }
}

#[test]
fn a_change_of_script_ends_a_run() {
    for (text, expected) in [
        ("Java入門", "java 入門"),
        ("3月15日", "3 月 15 日"),
        ("LINEで送る", "line で送 送る"),
        ("tea茶tea", "tea 茶 tea"),
        ("茶's", "茶 s"),
        ("don't茶", "dont 茶"),
    ] {
        assert_eq!(of(text).join(" "), expected, "{text}");
    }
}

#[test]
fn scripts_with_spaces_are_words() {
    for (text, expected) in [
        ("Зелёный чай", "зеленыи чаи"),
        ("Πράσινο τσάι", "πρασινο τσαι"),
        ("תה ירוק", "תה ירוק"),
        ("شاي أخضر", "شاي أخضر"),
        ("हरी चाय", "हरी चाय"),
        ("ชาเขียว", "ชาเขียว"),
        ("Trà xanh", "tra xanh"),
        ("Կանաչ թեյ", "կանաչ թեյ"),
    ] {
        assert_eq!(of(text).join(" "), expected, "{text}");
    }
}

#[test]
fn emoji_and_symbols_are_not_words() {
    for text in ["🫖", "👩‍🍳", "→ ⇒", "★★★", "€ £ ¥", "∑ ∞", "😀😀", "\u{200b}\u{feff}"]
    {
        assert!(of(text).is_empty(), "{text}: {:?}", of(text));
    }
    assert_eq!(of("tea🫖pot"), ["tea", "pot"]);
}

#[test]
fn ideographs_are_the_same_in_every_language() {
    for language in Language::ALL {
        assert_eq!(tokenize("日本語 お茶", language), tokenize("日本語 お茶", ENGLISH));
    }
}

#[test]
fn voicing_marks_and_jamo_join_the_character_before() {
    let decomposed: String = "がく 한국".nfd().collect();
    assert_eq!(of(&decomposed), ["がく", "한국"]);
    assert_eq!(clusters("か\u{3099}く").len(), 2);
    assert_eq!(clusters(&"한".nfd().collect::<String>()).len(), 1);
    assert_eq!(variants(["か\u{3099}"], ENGLISH).into_iter().collect::<Vec<_>>(), ["が"]);
}
