//! A memory's text as a model sees it: every character, including those that a browser does not show.
//!
//! A person who reviews a note sees its rendered form; a model gets its characters. Whatever is in one
//! and not in the other is where instructions are smuggled: zero-width and tag characters, direction
//! overrides, comments. Here each of them becomes a badge with its code point.

#[cfg(test)]
mod tests;

use maud::{Markup, PreEscaped, Render as _, html};

/// What in a text is not seen when it is rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Characters that have no shape of their own: zero-width ones, direction marks, controls, tags.
    pub(crate) characters_count: usize,
    /// HTML comments.
    pub(crate) comments_count: usize,
}

/// How a character that cannot be told from its surroundings differs from what it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// It looks like nothing.
    Nothing,
    /// It looks like a space. That is normal in many languages, so nobody is warned of it.
    Space,
    /// It looks like nothing, and a model reads it as an ASCII character.
    Tag(char),
}

/// Returns what is hidden in a text.
pub(crate) fn hidden(text: &str) -> Hidden {
    let is_plain = |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    if text.bytes().all(is_plain) {
        // Most texts are, and need no look at each character and its neighbors.
        return Hidden { characters_count: 0, comments_count: comments(text).len() };
    }
    let shapes = pieces(text).map(|(_, shape)| shape);
    let characters_count =
        shapes.filter(|shape| matches!(shape, Some(Shape::Nothing | Shape::Tag(_)))).count();
    Hidden { characters_count, comments_count: comments(text).len() }
}

/// Returns the whole text with everything that is hidden in it made visible.
pub(crate) fn view(text: &str) -> Markup {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut at = 0;
    for comment in comments(text) {
        push_visible(text.get(at..comment.start).unwrap_or_default(), &mut out);
        out.push_str("<mark class=\"hidden-text\" title=\"HTML comment\">");
        push_visible(text.get(comment.clone()).unwrap_or_default(), &mut out);
        out.push_str("</mark>");
        at = comment.end;
    }
    push_visible(text.get(at..).unwrap_or_default(), &mut out);
    PreEscaped(out)
}

/// Returns a short text, such as a host name, with everything that is hidden in it made visible.
pub(crate) fn short(text: &str) -> Markup {
    let mut out = String::with_capacity(text.len());
    push_visible(text, &mut out);
    PreEscaped(out)
}

/// Returns a text for where no markup can be, such as the title of a document: each hidden character is
/// replaced by its code point, such as `⟨U+202E⟩`.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ((_, character), shape) in pieces(text) {
        match shape {
            Some(Shape::Nothing | Shape::Tag(_)) => out.push_str(&format!("⟨{}⟩", code(character))),
            // Unusual spaces are normal in many languages, and they are seen as spaces.
            Some(Shape::Space) | None => out.push(character),
        }
    }
    out
}

/// Returns the ranges of HTML comments, in order. One that is not closed goes on to the end.
fn comments(text: &str) -> Vec<std::ops::Range<usize>> {
    const OPEN: &str = "<!--";
    const CLOSE: &str = "-->";
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text.get(at..).and_then(|rest| rest.find(OPEN)) {
        let start = at + start;
        let inside = start + OPEN.len();
        let length = text.get(inside..).and_then(|rest| rest.find(CLOSE));
        at = length.map_or(text.len(), |length| inside + length + CLOSE.len());
        found.push(start..at);
    }
    found
}

fn push_visible(text: &str, out: &mut String) {
    let mut plain_from = 0;
    let mut run: Vec<(char, Shape)> = Vec::new();
    for ((at, character), shape) in pieces(text) {
        let Some(shape) = shape else {
            if !run.is_empty() {
                push_badge(&run, out);
                run.clear();
                plain_from = at;
            }
            continue;
        };
        if run.is_empty() {
            text.get(plain_from..at).unwrap_or_default().render_to(out);
        }
        run.push((character, shape));
    }
    if run.is_empty() {
        text.get(plain_from..).unwrap_or_default().render_to(out);
    } else {
        push_badge(&run, out);
    }
}

/// How many characters of a run are named; a badge for each of thousands would make the page as heavy
/// as it is useless.
const NAMED_MAX: usize = 3;

/// Adds one badge for a run of hidden characters.
fn push_badge(run: &[(char, Shape)], out: &mut String) {
    let mut codes: Vec<String> = Vec::new();
    let mut repeated = 0_usize;
    let mut decoded = String::new();
    let mut last = None;
    for (character, shape) in run {
        match shape {
            Shape::Tag(ascii) => {
                decoded.push(*ascii);
                continue;
            }
            Shape::Nothing | Shape::Space => {}
        }
        if last == Some(character) {
            repeated += 1;
            continue;
        }
        end_repetition(&mut codes, &mut repeated);
        codes.push(code(*character));
        last = Some(character);
    }
    end_repetition(&mut codes, &mut repeated);
    let mut names: Vec<_> = run.iter().map(|(character, _)| name(*character)).collect();
    names.dedup();
    let title = match (names.as_slice(), run) {
        (names, _) if names.len() > NAMED_MAX => format!("{} hidden characters", run.len()),
        ([name], [(character, _)]) => format!("{name} {}", code(*character)),
        (names, _) => format!("{} hidden characters: {}", run.len(), names.join(", ")),
    };
    let badge = html! {
        span.hidden-char title=(title) {
            (codes.join(" "))
            @if !decoded.is_empty() { @if !codes.is_empty() { " " } "tags: " (decoded) }
        }
    };
    out.push_str(&badge.0);
}

fn end_repetition(codes: &mut [String], repeated: &mut usize) {
    if *repeated > 0
        && let Some(code) = codes.last_mut()
    {
        code.push_str(&format!(" × {}", *repeated + 1));
    }
    *repeated = 0;
}

fn code(character: char) -> String {
    format!("U+{:04X}", u32::from(character))
}

/// Returns every character with its place and, if it is hidden, how.
fn pieces(text: &str) -> impl Iterator<Item = ((usize, char), Option<Shape>)> {
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (at, character) = rest.next()?;
        let after = rest.peek().map(|(_, next)| *next);
        let shape = shape(character, before, after);
        before = Some(character);
        Some(((at, character), shape))
    })
}

/// Returns how a character is hidden, if it is, between its neighbors.
fn shape(character: char, before: Option<char>, after: Option<char>) -> Option<Shape> {
    match character {
        '\n' | '\t' | ' '..='~' => None,
        '\r' if after == Some('\n') => None,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some(Shape::Nothing),
        '\u{a0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200a}'
        | '\u{202f}'
        | '\u{205f}'
        | '\u{2800}'
        | '\u{3000}' => Some(Shape::Space),
        // Scripts and emoji need these two to join or to separate what stands beside them.
        '\u{200c}' | '\u{200d}' => {
            let joins = |side: Option<char>| side.is_some_and(is_joined);
            (!(joins(before) && joins(after))).then_some(Shape::Nothing)
        }
        // A selector chooses the form of the character before it. A second one has nothing to choose,
        // and a chain of them spells bytes.
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            (!before.is_some_and(has_forms)).then_some(Shape::Nothing)
        }
        '\u{e0020}'..='\u{e007e}' => {
            let ascii = char::from_u32(u32::from(character) - 0xe_0000);
            ascii.map(Shape::Tag)
        }
        _ => is_ignorable(character).then_some(Shape::Nothing),
    }
}

/// Returns whether a character has no shape in any context: Unicode's default ignorable characters and
/// the formatting ones that renderers drop.
pub(crate) fn is_ignorable(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a joiner beside this character may be part of ordinary writing.
fn is_joined(character: char) -> bool {
    matches!(character, '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{f00}'..='\u{109f}'
        | '\u{1780}'..='\u{18af}')
        || is_emoji(character)
        || character == '\u{fe0f}'
}

/// Returns whether a variation selector after this character may be part of ordinary writing.
fn has_forms(character: char) -> bool {
    is_emoji(character)
        || matches!(character, '#' | '*' | '0'..='9' | '©' | '®' | '\u{3400}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' | '\u{1820}'..='\u{18aa}')
}

fn is_emoji(character: char) -> bool {
    matches!(character, '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{27bf}'
        | '\u{2900}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

/// Returns what a hidden character is called.
fn name(character: char) -> &'static str {
    match character {
        '\u{a0}' => "NO-BREAK SPACE",
        '\u{ad}' => "SOFT HYPHEN",
        '\u{34f}' => "COMBINING GRAPHEME JOINER",
        '\u{61c}' => "ARABIC LETTER MARK",
        '\u{200b}' => "ZERO WIDTH SPACE",
        '\u{200c}' => "ZERO WIDTH NON-JOINER",
        '\u{200d}' => "ZERO WIDTH JOINER",
        '\u{200e}' => "LEFT-TO-RIGHT MARK",
        '\u{200f}' => "RIGHT-TO-LEFT MARK",
        '\u{2028}' => "LINE SEPARATOR",
        '\u{2029}' => "PARAGRAPH SEPARATOR",
        '\u{202a}' => "LEFT-TO-RIGHT EMBEDDING",
        '\u{202b}' => "RIGHT-TO-LEFT EMBEDDING",
        '\u{202c}' => "POP DIRECTIONAL FORMATTING",
        '\u{202d}' => "LEFT-TO-RIGHT OVERRIDE",
        '\u{202e}' => "RIGHT-TO-LEFT OVERRIDE",
        '\u{202f}' => "NARROW NO-BREAK SPACE",
        '\u{2060}' => "WORD JOINER",
        '\u{2061}'..='\u{2064}' => "INVISIBLE OPERATOR",
        '\u{2066}' => "LEFT-TO-RIGHT ISOLATE",
        '\u{2067}' => "RIGHT-TO-LEFT ISOLATE",
        '\u{2068}' => "FIRST STRONG ISOLATE",
        '\u{2069}' => "POP DIRECTIONAL ISOLATE",
        '\u{3000}' => "IDEOGRAPHIC SPACE",
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => "HANGUL FILLER",
        '\u{feff}' => "ZERO WIDTH NO-BREAK SPACE",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "VARIATION SELECTOR",
        '\u{e0000}'..='\u{e007f}' => "TAG CHARACTER",
        _ if character.is_control() => "CONTROL CHARACTER",
        _ if character.is_whitespace() || character == '\u{2800}' => "SPACE",
        _ => "INVISIBLE CHARACTER",
    }
}
