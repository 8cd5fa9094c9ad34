//! The name of the process that holds the write lock, for the error messages of those who wait.

use std::fmt;

use quipu_core::model::Timestamp;

/// The process that writes now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pid: u32,
    since: Timestamp,
    program: String,
}

/// The longest name of a program that is kept.
const PROGRAM_SIZE_MAX: usize = 43;

/// How many bytes a holder takes in the file: process, moment, length of the name, name.
pub(crate) const HOLDER_SIZE: usize = 4 + 8 + 1 + PROGRAM_SIZE_MAX;

impl Holder {
    /// Returns this process.
    pub(crate) fn new(program: &str, since: Timestamp) -> Self {
        let end = program.floor_char_boundary(PROGRAM_SIZE_MAX);
        let program = program.get(..end).unwrap_or_default().to_owned();
        Self { pid: std::process::id(), since, program }
    }

    pub(crate) fn to_bytes(&self) -> [u8; HOLDER_SIZE] {
        let mut written = self.pid.to_le_bytes().to_vec();
        written.extend(self.since.as_micros().to_le_bytes());
        written.push(u8::try_from(self.program.len()).unwrap_or(0));
        written.extend(self.program.as_bytes());
        let mut bytes = [0; HOLDER_SIZE];
        for (place, byte) in bytes.iter_mut().zip(written) {
            *place = byte;
        }
        bytes
    }

    /// Reads what another process has left; `None` if it left nothing, or if it is malformed.
    pub(crate) fn from_bytes(bytes: &[u8; HOLDER_SIZE]) -> Option<Self> {
        let (pid, rest) = bytes.split_first_chunk::<4>()?;
        let (since, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first()?;
        let program = str::from_utf8(rest.get(..usize::from(*length))?).ok()?;
        let pid = u32::from_le_bytes(*pid);
        let is_plain = program.chars().all(|letter| letter == ' ' || letter.is_ascii_graphic());
        (pid != 0 && is_plain).then(|| Self {
            pid,
            since: Timestamp::from_micros(i64::from_le_bytes(*since)),
            program: program.to_owned(),
        })
    }

    pub(crate) fn is_this_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Returns whether the process is stopped, as by Ctrl-Z, where the system reports it.
    fn is_stopped(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
        // The state follows the program's name, which is in parentheses and may contain more of them.
        let state = status.ok().and_then(|status| {
            status.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next())
        });
        matches!(state, Some('T' | 't'))
    }

    /// Returns what to do about it.
    pub(crate) fn hint(&self) -> String {
        let pid = self.pid;
        if self.is_stopped() {
            return format!("continue it with `kill -CONT {pid}`, or end it; reading still works");
        }
        "wait until it is done and try again, or end it if it hangs; reading still works".to_owned()
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stopped = if self.is_stopped() { ", which is stopped" } else { "" };
        write!(f, "process {} (`{}`), since {}{stopped}", self.pid, self.program, self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_read_as_it_was_written() {
        for program in ["quipu serve", "", &"é".repeat(40)] {
            let holder = Holder::new(program, Timestamp::from_micros(1_700_000_000_000_000));
            let read = Holder::from_bytes(&holder.to_bytes());
            assert_eq!(read, program.is_ascii().then_some(holder));
        }
    }

    #[test]
    fn a_file_without_a_holder_names_nobody() {
        assert_eq!(Holder::from_bytes(&[0; HOLDER_SIZE]), None);
        assert_eq!(Holder::from_bytes(&[0xff; HOLDER_SIZE]), None);
    }
}
