//! Dates in Chinese and Japanese, which do not separate words: `上周`, `先週`, `2025年5月`, `三天前`.

use jiff::civil::Date;

use super::{Bound, Days, determined, plain};

/// What is said as a whole, and its English words. What begins with another comes first.
const FIXED: [(&[&str], &[&str]); 8] = [
    (&["今天", "今日", "本日"], &["today"]),
    (&["昨天", "昨日"], &["yesterday"]),
    (&["上个星期", "上個星期", "上星期", "上周", "上週", "先週"], &["last", "week"]),
    (&["这个星期", "這個星期", "本周", "本週", "这周", "這週", "今週"], &["this", "week"]),
    (&["上个月", "上個月", "上月", "先月"], &["last", "month"]),
    (&["这个月", "這個月", "本月", "今月"], &["this", "month"]),
    (&["去年", "昨年"], &["last", "year"]),
    (&["今年"], &["this", "year"]),
];

/// What is counted before `前`.
const COUNTED: [(&[&str], &str); 4] = [
    (&["天", "日"], "days"),
    (&["周", "週間", "週", "个星期", "個星期", "星期"], "weeks"),
    (&["个月", "個月", "か月", "ヶ月", "カ月", "ヵ月"], "months"),
    (&["年"], "years"),
];

const WEEKDAYS: [(&str, &[&str]); 7] = [
    ("monday", &["星期一", "周一", "週一", "月曜"]),
    ("tuesday", &["星期二", "周二", "週二", "火曜"]),
    ("wednesday", &["星期三", "周三", "週三", "水曜"]),
    ("thursday", &["星期四", "周四", "週四", "木曜"]),
    ("friday", &["星期五", "周五", "週五", "金曜"]),
    ("saturday", &["星期六", "周六", "週六", "土曜"]),
    ("sunday", &["星期日", "星期天", "周日", "週日", "日曜"]),
];

/// What follows the days that bound a span.
const BOUNDS: [(&[&str], Bound); 4] = [
    (&["之前", "以前", "より前", "前"], Bound::Before),
    (&["まで", "为止", "為止"], Bound::Until),
    (&["之后", "之後", "以后", "以後", "より後"], Bound::After),
    (&["以来", "以來", "以降", "から"], Bound::Since),
];

const DIGITS: [(char, u32); 12] = [
    ('一', 1),
    ('二', 2),
    ('两', 2),
    ('兩', 2),
    ('三', 3),
    ('四', 4),
    ('五', 5),
    ('六', 6),
    ('七', 7),
    ('八', 8),
    ('九', 9),
    ('十', 10),
];

/// Days, and what follows them.
type Rest<'t> = Option<(Days, &'t str)>;

/// Returns the first span of days in a text, and the characters that mean it.
pub(super) fn find(text: &str, today: Date) -> Option<(Days, String)> {
    let is_han = |letter: char| ('\u{3040}'..='\u{9fff}').contains(&letter);
    // A number is read from its first digit on, and not from its last.
    let mut before = ' ';
    for (place, letter) in text.char_indices() {
        let is_start = is_han(letter) || (digit(letter).is_some() && digit(before).is_none());
        before = letter;
        let Some(rest) = text.get(place..).filter(|_| is_start) else { continue };
        let Some((days, end)) = expression(rest, today) else { continue };
        let bounded = BOUNDS.iter().find_map(|(words, bound)| Some((*bound, after(end, words)?)));
        let (days, end) = bounded.map_or((days, end), |(bound, end)| (bound.apply(days), end));
        let written = rest.get(..rest.len() - end.len()).unwrap_or_default();
        return written.contains(is_han).then(|| (days, written.to_owned()));
    }
    None
}

/// Reads an expression at the beginning of a text.
fn expression(text: &str, today: Date) -> Rest<'_> {
    for (words, english) in FIXED {
        if let Some(rest) = after(text, words) {
            return Some((plain(english, today)?.0, rest));
        }
    }
    for (english, words) in WEEKDAYS {
        if let Some(rest) = after(text, words) {
            return Some((determined(&[english], today)?.0, after(rest, &["日"]).unwrap_or(rest)));
        }
    }
    ago(text, today).or_else(|| calendar(text, today))
}

/// Reads `三天前`.
fn ago(text: &str, today: Date) -> Rest<'_> {
    let (count, rest) = number(text)?;
    let counted = |(words, unit): &(&[&str], &'static str)| Some((*unit, after(rest, words)?));
    let (unit, rest) = COUNTED.iter().find_map(counted)?;
    let rest = rest.strip_prefix('前')?;
    Some((plain(&[&count.to_string(), unit, "ago"], today)?.0, rest))
}

/// Reads `2025年5月4日` and its parts.
fn calendar(text: &str, today: Date) -> Rest<'_> {
    let (first, rest) = number(text)?;
    if let Some(rest) = rest.strip_prefix('月') {
        let month = Date::new(2000, i8::try_from(first).ok()?, 1).ok()?;
        let month = month.strftime("%B").to_string().to_lowercase();
        if let Some((day, rest)) = day(rest) {
            return Some((plain(&[&month, &day.to_string()], today)?.0, rest));
        }
        return Some((determined(&[&month], today)?.0, rest));
    }
    let rest = rest.strip_prefix('年')?;
    let months = number(rest).and_then(|(month, rest)| Some((month, rest.strip_prefix('月')?)));
    let Some((month, rest)) = months else {
        return Some((determined(&[&first.to_string()], today)?.0, rest));
    };
    let (written, rest) = match day(rest) {
        Some((day, rest)) => (format!("{first}-{month:02}-{day:02}"), rest),
        None => (format!("{first}-{month:02}"), rest),
    };
    Some((plain(&[&written], today)?.0, rest))
}

fn day(text: &str) -> Option<(u32, &str)> {
    let (day, rest) = number(text)?;
    Some((day, after(rest, &["日", "号", "號"])?))
}

/// Reads a number in digits, or up to twelve in characters.
fn number(text: &str) -> Option<(u32, &str)> {
    let mut value = 0_u32;
    let mut rest = text;
    while let Some(next) = rest.chars().next().filter(char::is_ascii_digit) {
        value = value.checked_mul(10)?.checked_add(next.to_digit(10)?)?;
        rest = rest.get(1..)?;
    }
    if rest.len() < text.len() {
        return Some((value, rest));
    }
    let mut letters = text.chars();
    let first = digit(letters.next()?)?;
    let rest = letters.as_str();
    let second = letters.next().and_then(digit).filter(|second| first == 10 && *second < 3);
    Some(second.map_or((first, rest), |second| (first + second, letters.as_str())))
}

fn digit(letter: char) -> Option<u32> {
    let known = DIGITS.iter().find(|(it, _)| *it == letter);
    letter.to_digit(10).or(known.map(|(_, value)| *value))
}

/// Returns what follows one of some words at the beginning of a text.
fn after<'t>(text: &'t str, words: &[&str]) -> Option<&'t str> {
    words.iter().find_map(|word| text.strip_prefix(word))
}
