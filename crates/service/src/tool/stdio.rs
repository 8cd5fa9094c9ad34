//! The memory tool over standard input and output: one command per line, one answer per line.

use std::io::{self, BufRead, Read as _, Write};

use serde_json::Value;

use super::{Answer, MemoryTool};

/// A longer line cannot be a valid command: its content alone would exceed the limit many times.
const LINE_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Answers commands until the input ends. A line that is not a command gets an error, and the next
/// one is read.
pub fn serve(tool: &MemoryTool, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    while read_line(&mut input, &mut line)? {
        let answer = answer(tool, &line);
        output.write_all(in_one_line(serde_json::to_string(&answer)?).as_bytes())?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

fn answer(tool: &MemoryTool, line: &[u8]) -> Answer {
    if line.len() > LINE_SIZE_BYTES_MAX {
        return bad_line(&format!("it is longer than {LINE_SIZE_BYTES_MAX} bytes"));
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(input) => tool.call(&input),
        Err(error) => bad_line(&error.to_string()),
    }
}

/// Escapes characters that JSON allows unescaped but that some readers take for the end of a line.
fn in_one_line(json: String) -> String {
    if json.is_ascii() {
        return json;
    }
    LINE_ENDS.iter().fold(json, |json, (end, escaped)| json.replace(*end, escaped))
}

const LINE_ENDS: [(char, &str); 3] =
    [('\u{85}', "\\u0085"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

fn bad_line(problem: &str) -> Answer {
    let content = format!(
        "Error: Invalid input: the line is not a JSON object with a memory command ({problem})"
    );
    Answer { content, is_error: true }
}

/// Reads a line without its newline. Of a line that is too long, slightly more than the limit is
/// kept and the rest is skipped. Returns `false` at the end of the input.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let limit = u64::try_from(LINE_SIZE_BYTES_MAX + 2).unwrap_or(u64::MAX);
    if input.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > LINE_SIZE_BYTES_MAX {
        skip_line(input)?;
    }
    Ok(true)
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (used, is_done) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(used);
        if is_done {
            return Ok(());
        }
    }
}
