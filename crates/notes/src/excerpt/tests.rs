use proptest::prelude::*;

use super::*;

fn excerpted(text: &str, words: &[&str], size_bytes_max: usize) -> String {
    let languages = [Language::English];
    let phrases: Vec<_> = words.iter().flat_map(|it| Phrase::spellings(it, &languages)).collect();
    let phrases: Vec<_> = phrases.iter().collect();
    excerpt(text, Language::English, &phrases, size_bytes_max)
}

const NOTE: &str = "# Tea\n\nA long introduction that is not asked for.\n\n## Brewing\n\n\
    Heat the water.\nNever boil it: 80 °C is enough.\n\n## Cups\n\nPorcelain, from Arita.\n";

#[test]
fn a_short_text_is_shown_whole() {
    assert_eq!(excerpted("\n tea \n", &["cups"], 10), "tea");
}

#[test]
fn the_lines_with_the_most_words_are_shown_below_their_heading() {
    assert_eq!(
        excerpted(NOTE, &["boiling", "enough"], 100),
        "## Brewing\n…\nNever boil it: 80 °C is enough.\n…"
    );
    assert_eq!(excerpted(NOTE, &["Arita"], 60), "## Cups\nPorcelain, from Arita.");
    assert_eq!(
        excerpted(NOTE, &["water", "boil"], 80),
        "## Brewing\nHeat the water.\nNever boil it: 80 °C is enough.\n…"
    );
}

#[test]
fn a_text_without_a_match_is_shown_from_its_beginning() {
    assert_eq!(excerpted(NOTE, &["coffee"], 20), "# Tea\n…");
}

#[test]
fn a_line_that_is_too_long_is_cut_around_the_match() {
    let line = format!("{} kettle {}", "löng ".repeat(100), "ende ".repeat(100));
    let shown = excerpted(&line, &["kettle"], 80);
    assert!(shown.contains("kettle") && shown.len() <= 80, "{shown}");
}

proptest! {
    #[test]
    fn an_excerpt_never_exceeds_its_size(
        text in "([a-c# é]{0,9}\n?){0,40}",
        word in "[abc]{2}",
        size in 0_usize..120,
    ) {
        let shown = excerpted(&text, &[&word], size);
        prop_assert!(shown.len() <= size.max(2 * (OMITTED.len() + 1)), "{} {shown:?}", shown.len());
    }
}
