//! Screens texts for credentials, so that a store can warn of them, redact or refuse them.
//!
//! One pass looks for anchors: prefixes such as `ghp_`, names such as `password`, marks such as
//! `://`. At each anchor a rule decides whether a credential is there. Rules read on from their
//! anchor, stop at the first byte that does not fit, and are such that few of them read the same
//! byte, so the whole takes time linear in the size of the text. What to do about a finding is left
//! to the caller.
//!
//! Texts are screened when they are written, by agents that write about credentials all the time.
//! So a false alarm is as bad as a miss: placeholders, documented examples, hashes and ids pass.

mod anchors;
mod assignments;
mod base64;
mod blocks;
mod characters;
mod connections;
mod headers;
mod kind;
mod randomness;
#[cfg(test)]
mod tests;
mod tokens;

use std::ops::Range;

use anchors::{ANCHORS, Rule};
use characters::Class;
pub use kind::SecretKind;

/// The position of a credential in a text; never the credential itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it opens.
    pub kind: SecretKind,
    /// The line in which it begins; the first is 1. It is 0 if a path holds it.
    pub line: usize,
    /// The bytes of the text that must not be shown, on character boundaries.
    pub span: Range<usize>,
}

impl Finding {
    /// Returns where it is: `line 3`, or `the path`.
    pub fn place(&self) -> String {
        match self.line {
            0 => "the path".to_owned(),
            line => format!("line {line}"),
        }
    }

    /// Returns whether it is text that was redacted before, rather than a credential.
    pub fn is_forgotten(&self) -> bool {
        self.kind == SecretKind::Forgotten
    }
}

/// Returns the credentials in the text, in order and without overlap.
pub fn findings(text: &str) -> Vec<Finding> {
    let bytes = text.as_bytes();
    let mut spotted = Vec::new();
    // Anchors before this are skipped: they are inside a private key, or inside an image, which may
    // contain anything by chance.
    let mut read_until = 0;
    for (anchor, rule) in ANCHORS.in_text(bytes) {
        if anchor.start < read_until {
            continue;
        }
        match rule {
            Rule::Token(family) => spotted.extend(family.token_at(bytes, anchor)),
            Rule::Spot(spot) => spotted.extend(spot(bytes, anchor)),
            Rule::Block => {
                let block = blocks::private_key(text, anchor);
                read_until = block.as_ref().map_or(read_until, |(_, span)| span.end);
                spotted.extend(block);
            }
            Rule::Image => read_until = Class::Base64.run_end(bytes, anchor.end),
        }
    }
    merged(text, spotted)
}

/// Returns the text with `[redacted: aws-access-key]` in place of each finding.
///
/// The findings must be those of this text. Screening the result finds nothing.
pub fn redacted(text: &str, findings: &[Finding]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut kept_until = 0;
    for finding in findings {
        result.push_str(text.get(kept_until..finding.span.start).unwrap_or_default());
        result.push_str("[redacted: ");
        result.push_str(finding.kind.as_str());
        result.push(']');
        kept_until = finding.span.end;
    }
    result.push_str(text.get(kept_until..).unwrap_or_default());
    result
}

/// Sorts what the rules found, and merges overlaps under the most specific kind.
fn merged(text: &str, mut spotted: Vec<(SecretKind, Range<usize>)>) -> Vec<Finding> {
    spotted.sort_by_key(|(_, span)| span.start);
    let mut findings: Vec<Finding> = Vec::new();
    let (mut line, mut counted_until) = (1, 0);
    for (kind, span) in spotted {
        if let Some(last) = findings.last_mut().filter(|last| span.start < last.span.end) {
            last.kind = last.kind.min(kind);
            last.span.end = last.span.end.max(span.end);
            continue;
        }
        let between = text.get(counted_until..span.start).unwrap_or_default();
        line += between.matches('\n').count();
        counted_until = span.start;
        findings.push(Finding { kind, line, span });
    }
    findings
}
