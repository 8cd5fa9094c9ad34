//! Numbers, sizes and times as people read them.

use maud::{Markup, html};
use quipu_core::model::Timestamp;

/// Returns a size such as `1.2 kB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "one decimal place is shown")]
    let mut amount = bytes as f64 / 1_000.0;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    while amount >= 999.95 {
        let Some(larger) = units.next() else { break };
        (amount, unit) = (amount / 1_000.0, larger);
    }
    format!("{amount:.1} {unit}")
}

/// Returns a count with its noun: `1 memory`, `12 memories`.
pub(crate) fn count(number: impl Into<u64>, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Returns a number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Returns a time: how long ago it was, and exactly when.
pub(crate) fn time(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) title=(at) { (ago(at, now)) } }
}

/// Returns a time as `2026-11-18 12:46:07 UTC`.
pub(crate) fn exact(at: Timestamp) -> String {
    let text = at.to_string();
    let (date, rest) = text.split_once('T').unwrap_or((&text, ""));
    let clock = rest.split_once('.').map_or(rest, |(clock, _)| clock);
    format!("{date} {clock} UTC")
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_micros() - at.as_micros()) / 1_000_000;
    let (amount, unit) = match seconds {
        ..0 => return exact(at),
        0..5 => return "just now".to_owned(),
        5..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..172_800 => (seconds / 3_600, "h"),
        172_800..5_184_000 => (seconds / 86_400, "days"),
        _ => {
            let text = at.to_string();
            return text.split_once('T').map_or(text.clone(), |(date, _)| date.to_owned());
        }
    };
    format!("{amount} {unit} ago")
}

/// Returns about how many tokens a text is for a model: four bytes each, which is right within a third
/// for English and code and an underestimate for other scripts.
pub(crate) fn tokens(size_bytes: u64) -> u64 {
    size_bytes.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_place() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_250), "1.2 kB");
        assert_eq!(size(999_949), "999.9 kB");
        assert_eq!(size(999_951), "1.0 MB");
        assert_eq!(size(u64::MAX), "18446744.1 TB");
    }

    #[test]
    fn counts_agree_with_their_nouns() {
        assert_eq!(count(1_u64, "memory", "memories"), "1 memory");
        assert_eq!(count(1_234_567_u64, "memory", "memories"), "1\u{202f}234\u{202f}567 memories");
        assert_eq!(count(0_u64, "memory", "memories"), "0 memories");
    }

    #[test]
    fn times_are_relative_while_that_helps() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert_eq!(ago(at(0), at(3)), "just now");
        assert_eq!(ago(at(0), at(90)), "1 min ago");
        assert_eq!(ago(at(0), at(86_400)), "24 h ago");
        assert_eq!(ago(at(0), at(86_400 * 100)), "1970-01-01");
        assert_eq!(ago(at(61), at(0)), "1970-01-01 00:01:01 UTC");
    }
}
