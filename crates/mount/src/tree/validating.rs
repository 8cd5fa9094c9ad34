//! Refuses what cannot be stored as early as possible.
//!
//! Many programs check the result of `write`, and few that of `close`: a shell's `echo x > f` and
//! Python's `open(f, "w").write(x)` both ignore it. So whatever is certain at the write is refused
//! there. Only the close can judge what needs the whole text: a character whose bytes come in two
//! writes, a credential of several lines, and gaps that were never filled.

use quipu_core::model::SecretPolicy;

use super::TreeGuard;
use crate::error::TreeError;
use crate::nodes::{Blank, Ino, ProcessId};

/// UTF-8 has at most this many continuation bytes per character.
const CONTINUATION_MAX: usize = 3;

impl TreeGuard<'_> {
    /// Fails if no file with these bytes at this offset can be stored, whatever else is written.
    pub(super) fn require_acceptable(
        &mut self,
        ino: Ino,
        (start, bytes): (usize, &[u8]),
        writer: ProcessId,
    ) -> Result<(), TreeError> {
        let file = self.state.nodes.file(ino)?;
        // Writeback of a mapped page carries the bytes around the change as well.
        if file.is_scratch || writer == ProcessId::UNKNOWN {
            return Ok(());
        }
        let buffer = file.buffer.as_ref().ok_or(TreeError::Stale)?;
        let base_size = buffer.base.as_ref().map_or(0, |base| base.as_str().len());
        let before = buffer.bytes.get(..start.min(buffer.bytes.len())).unwrap_or_default();
        let is_at_end = before.len() == start;
        if !can_be_text(if is_at_end { before } else { &[0] }, bytes) {
            return Err(TreeError::NotText);
        }
        let line = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let line = [before.get(line..).unwrap_or_default(), bytes].concat();
        self.require_no_credential(&line)?;
        self.require_room(base_size, start + bytes.len())
    }

    /// Gives up the empty files of a process that has just failed to write elsewhere. A database
    /// creates an empty file, fails to write the first page of its journal, and would leave the empty
    /// file behind as a memory. Files that it creates later are not affected.
    pub(super) fn give_up_blank_files(&mut self, writer: ProcessId) {
        let opened = self.state.handles.values().filter(|open| open.opener == writer);
        for ino in opened.map(|open| open.ino).collect::<Vec<_>>() {
            if let Ok(file) = self.state.nodes.file_mut(ino)
                && file.memory.is_none()
                && let Some(buffer) = &mut file.buffer
                && buffer.blank != Blank::No
            {
                buffer.is_given_up = true;
            }
        }
    }

    /// Fails if the store rejects credentials and the bytes hold one.
    fn require_no_credential(&mut self, bytes: &[u8]) -> Result<(), TreeError> {
        if self.record()?.policy.secrets == SecretPolicy::Reject
            && let Ok(text) = str::from_utf8(bytes)
            && !quipu_screen::findings(text).is_empty()
        {
            return Err(TreeError::Refused);
        }
        Ok(())
    }

    /// Fails if a growing text does not fit into the store.
    fn require_room(&mut self, before: usize, after: usize) -> Result<(), TreeError> {
        let growth = u64::try_from(after.saturating_sub(before)).unwrap_or(u64::MAX);
        if growth == 0 {
            return Ok(());
        }
        let limit = self.engine().limits().store_size_bytes_max;
        let has_room = self.is_usage(|usage| usage.size_bytes.saturating_add(growth) <= limit)?;
        if has_room { Ok(()) } else { Err(TreeError::StoreFull) }
    }
}

/// Returns whether bytes can be part of a text after `before`: only the characters at either end may
/// be incomplete. NULs alone are a gap that may still be filled, as `posix_fallocate` makes them; a
/// NUL among other bytes is not text.
fn can_be_text(before: &[u8], bytes: &[u8]) -> bool {
    if bytes.contains(&0) {
        return bytes.iter().all(|&byte| byte == 0);
    }
    let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    // The incomplete character at the end of `before`, which these bytes may complete.
    let begun = before.iter().rev().take(CONTINUATION_MAX).take_while(|byte| is_continuation(byte));
    let begun = (begun.count() + 1).min(before.len());
    let begun = before.get(before.len() - begun..).unwrap_or_default();
    let tail: Vec<u8> = match begun.first() {
        Some(first) if *first >= 0b1100_0000 => [begun, bytes].concat(),
        Some(0) => {
            let skipped =
                bytes.iter().take(CONTINUATION_MAX).take_while(|byte| is_continuation(byte));
            bytes.get(skipped.count()..).unwrap_or_default().to_vec()
        }
        _ => bytes.to_vec(),
    };
    match str::from_utf8(&tail) {
        Ok(_) => true,
        // The last character is incomplete, and the next write may complete it.
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_parts_is_text() {
        let text = "grün, 茶, 🍵 and more";
        for cut in 0..=text.len() {
            let (before, after) = text.as_bytes().split_at(cut);
            assert!(can_be_text(b"", before), "{cut}");
            assert!(can_be_text(before, after), "{cut}");
            // The end may be written before the beginning.
            assert!(can_be_text(&[0], after), "{cut}");
        }
    }

    #[test]
    fn what_can_never_be_text_is_found() {
        for bytes in [&b"a\0b"[..], b"\xff", b"a \xc3\x28 b", b"\x80 at the beginning"] {
            assert!(!can_be_text(b"", bytes), "{bytes:?}");
        }
        assert!(can_be_text(b"", &[0; 9]));
        assert!(!can_be_text(b"complete", b"\x80"));
        assert!(!can_be_text("ü".as_bytes(), b"\x80"));
        assert!(!can_be_text(b"\xe8\x8c", b"not its end"));
    }
}
