//! A pager for long output on a terminal.

use std::io::{self, IsTerminal as _, Write};
use std::process::{Child, Command, Stdio};

/// The destination of long output: the user's pager on a terminal, else standard output.
pub(crate) struct Pager {
    child: Option<Child>,
}

impl Pager {
    /// Starts the pager, a shell command line, if standard output is a terminal.
    pub(crate) fn start(pager: &str) -> Self {
        let is_wanted = !pager.is_empty() && pager != "cat" && io::stdout().is_terminal();
        if !is_wanted || !is_installed(pager) {
            return Self { child: None };
        }
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("exec {pager}")).stdin(Stdio::piped());
        Self { child: command.spawn().ok() }
    }

    /// Returns whether a pager shows the output.
    pub(crate) fn is_paging(&self) -> bool {
        self.child.is_some()
    }

    /// Writes a part of the output.
    pub(crate) fn write(
        &mut self,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(pager) => {
                // Colors are meant for the terminal behind the pager.
                let choice = anstream::AutoStream::choice(&io::stdout());
                let mut out = anstream::AutoStream::new(Vec::new(), choice);
                text(&mut out)?;
                pager.write_all(&out.into_inner())
            }
            None => {
                let mut out = anstream::stdout().lock();
                text(&mut out)?;
                out.flush()
            }
        }
    }
}

/// Returns whether the shell finds the program of a pager, as far as that can be told.
///
/// Without this check nothing would be shown: the shell exits, and its closed pipe looks like a user
/// who has quit the pager.
fn is_installed(pager: &str) -> bool {
    let program = pager.split_whitespace().find(|word| !word.contains('='));
    let is_plain =
        |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    // Quotes and expansions are left to the shell.
    let Some(program) = program.filter(is_plain) else { return true };
    let mut look = Command::new("sh");
    look.args(["-c", "command -v \"$1\"", "sh", program]).stdout(Stdio::null());
    look.status().is_ok_and(|status| status.success())
}

impl Drop for Pager {
    /// Waits until the user leaves the pager.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.stdin.take());
            child.wait().map(drop).unwrap_or_default();
        }
    }
}
