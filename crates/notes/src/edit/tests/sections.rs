//! Sections: which text belongs to a heading.

use super::*;

/// Returns the section's body that an edit replaces.
fn body_of(text: &str, section: &str) -> String {
    let marker = "\u{1}";
    let replaced = replace_section(text, section, marker).unwrap();
    let (before, after) = replaced.split_once(marker).unwrap();
    let after = after.trim_start_matches(['\r', '\n']);
    let old = text.strip_prefix(before.trim_end_matches(['\r', '\n'])).unwrap();
    old.strip_suffix(after).unwrap().trim().to_owned()
}

#[test]
fn a_section_is_the_text_up_to_the_next_heading() {
    for (text, section, expected) in [
        ("# A\none\n", "A", "one"),
        ("# A\none\n## B\ntwo\n", "A", "one"),
        ("# A\none\n## B\ntwo\n", "B", "two"),
        ("## B\ntwo\n# A\none\n", "B", "two"),
        ("intro\n# A\none", "A", "one"),
        ("A\n===\none\n\nB\n---\ntwo\n", "A", "one"),
        ("A\n===\none\n\nB\n---\ntwo\n", "B", "two"),
        ("# A #\none\n", "A", "one"),
        ("   # A\none\n", "A", "one"),
        ("# A\n```\n# not\n```\n# B\n", "A", "```\n# not\n```"),
        ("# A\n- # not\n# B\n", "A", "- # not"),
        ("# A\n> # not\n# B\n", "A", "> # not"),
        ("# A\n#not\n# B\n", "A", "#not"),
        ("# A\n\n\n# B\n", "A", ""),
    ] {
        assert_eq!(body_of(text, section), expected, "{text:?}");
    }
}

#[test]
fn headings_are_found_by_their_text() {
    for (text, section) in [
        ("# Tea *time* `now`", "Tea time now"),
        ("# Tea [[House]]", "Tea [[House]]"),
        ("# [Tea](a.md)", "Tea"),
        ("# Tea & Co", "Tea & Co"),
        ("# TEA", "tea"),
        ("# Größe", "größe"),
        ("### Tea", "### Tea"),
        ("### Tea", "  ###   Tea  "),
        ("# 日本語", "日本語"),
        ("# a  b", "a b"),
        ("Tea\n---", "## Tea"),
    ] {
        assert!(replace_section(text, section, "x").is_ok(), "{text:?} {section:?}");
    }
    for (text, section) in
        [("# Tea", "## Tea"), ("# Tea", "Te"), ("#Tea", "Tea"), ("\\# Tea", "Tea"), ("", "Tea")]
    {
        assert!(replace_section(text, section, "x").is_err(), "{text:?} {section:?}");
    }
}

#[test]
fn an_exact_heading_wins_over_one_in_another_case() {
    let text = "# Tea\none\n# tea\ntwo\n";
    assert_eq!(body_of(text, "Tea"), "one");
    assert_eq!(body_of(text, "tea"), "two");
    let error = replace_section(text, "TEA", "x").unwrap_err();
    assert!(matches!(error, EditError::SeveralSections { ref lines, .. } if *lines == [1, 3]));
}

#[test]
fn errors_list_the_existing_headings() {
    for (error, expected) in [
        (
            replace_section("text", "A", "x"),
            "the note has no section `A`; it has no headings at all",
        ),
        (
            replace_section("# B\n## C\n", "A", "x"),
            "the note has no section `A`; its headings are `# B`, `## C`",
        ),
        (find_replace("a", "b", "c", 1), "the text to find is not in the note"),
        (find_replace("a a", "a", "c", 1), "the text to find is in the note 2 times, not 1"),
        (find_replace("a", "", "c", 1), "the text to find is empty"),
    ] {
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
    let many = "# a\n".repeat(200);
    let error = replace_section(&many, "b", "x").unwrap_err();
    assert!(matches!(error, EditError::NoSection { ref headings, .. } if headings.len() == 50));
}

#[test]
fn crlf_is_preserved() {
    let text = "# A\r\n\r\none\r\n\r\n# B\r\ntwo\r\n";
    for edited in [
        replace_section(text, "A", "x"),
        replace_section(text, "B", "x"),
        insert_before_section(text, "B", "x"),
        insert_after_section(text, "A", "x"),
        Ok(append(text, "x\r\n")),
        Ok(prepend(text, "x")),
    ] {
        let edited = edited.unwrap();
        assert_eq!(edited.matches('\n').count(), edited.matches("\r\n").count(), "{edited:?}");
    }
}
