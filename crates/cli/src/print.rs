//! Output: text for people, JSON for scripts.

use std::io::{IsTerminal as _, Write};

use anstyle::{AnsiColor, Color, Style};
use quipu_core::engine::Written;
use quipu_core::model::{SecretPolicy, Timestamp};
use quipu_screen::Finding;
use serde::Serialize;

use crate::failure::Failure;

/// The format of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text for people.
    Text,
    /// One JSON document.
    Json,
}

/// Prints `body` as JSON, or else what `text` writes.
pub(crate) fn answer(
    form: Form,
    body: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match form {
        Form::Json => {
            serde_json::to_writer_pretty(&mut out, body)?;
            writeln!(out)?;
        }
        Form::Text => text(&mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// An answer of a command that erases, with the copies of text that erasing does not reach.
#[derive(Serialize)]
struct Reached<'a, B> {
    #[serde(flatten)]
    body: &'a B,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unreachable: &'a [String],
}

/// Like [`answer`], and notes the copies of text that erasing does not reach.
pub(crate) fn answer_reached(
    form: Form,
    unreachable: &[String],
    body: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    for sentence in unreachable {
        note(sentence);
    }
    answer(form, &Reached { body, unreachable }, text)
}

/// Prints text as is: no colors, no final line break.
pub(crate) fn raw(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a remark on standard error.
pub(crate) fn note(text: &str) {
    let style = style(AnsiColor::Yellow).bold();
    // A note that cannot be written must not fail the command.
    writeln!(anstream::stderr(), "{style}note{style:#}: {text}").unwrap_or_default();
}

/// Notes which credentials screening has found in a write.
pub(crate) fn note_findings(written: &Written) {
    for finding @ Finding { line, kind, .. } in &written.findings {
        note(&match written.policy {
            _ if finding.is_forgotten() => {
                format!("{} brings back {kind}; take it out again", finding.place())
            }
            SecretPolicy::Redact => {
                format!("line {line} contained a credential ({kind}), which was redacted")
            }
            SecretPolicy::Off | SecretPolicy::Warn | SecretPolicy::Reject => format!(
                "line {line} contains a credential ({kind}); remove it, because many can read memories"
            ),
        });
    }
}

/// Asks for confirmation on the terminal before something is lost. Fails without a terminal.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "cannot ask for confirmation, because standard input is not a terminal",
        )
        .with_hint("`--yes` confirms; nothing was changed"));
    }
    write!(anstream::stderr(), "{question} Continue? [y/N] ")?;
    let mut reply = String::new();
    std::io::stdin().read_line(&mut reply)?;
    match reply.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::other("canceled; nothing was changed")
            .with_hint("`--yes` skips the confirmation")),
    }
}

pub(crate) fn style(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(color)))
}

/// Formats a size for people: `512 B`, `1.5 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let power = bytes.checked_ilog2().unwrap_or(0) / 10;
    let power = power.min(3);
    let unit = UNITS.get(power as usize).unwrap_or(&"B");
    if power == 0 {
        return format!("{bytes} {unit}");
    }
    // One decimal is shown, so integers are precise enough.
    let tenths = u128::from(bytes) * 10 / (1_u128 << (10 * power));
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// Formats a timestamp in the host's time zone.
pub(crate) fn local(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_microsecond(at.as_micros());
    let zone = jiff::tz::TimeZone::system();
    moment.map_or_else(
        |_| at.to_string(),
        |moment| moment.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %z").to_string(),
    )
}

/// Returns `1 memory`, `2 memories`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (102_400, "100.0 KiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected);
        }
    }
}
