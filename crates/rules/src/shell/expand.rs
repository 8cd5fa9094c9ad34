//! What a command runs: behind `sudo`, in `bash -c`, after `-exec`.

use super::base_name;

/// What a command runs besides itself.
#[derive(Debug, Default)]
pub(super) struct Inner {
    /// Commands in its arguments.
    pub(super) commands: Vec<Vec<String>>,
    /// Scripts in its arguments.
    pub(super) scripts: Vec<String>,
    /// Whether there may be more.
    pub(super) is_cut: bool,
}

/// Words of the grammar in front of a command.
const RESERVED: [&str; 13] = [
    "if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "coproc",
    "function",
];

/// Commands that run their arguments.
const WRAPPERS: [&str; 24] = [
    "sudo",
    "doas",
    "env",
    "command",
    "builtin",
    "exec",
    "nohup",
    "nice",
    "ionice",
    "timeout",
    "time",
    "setsid",
    "stdbuf",
    "xargs",
    "parallel",
    "watch",
    "strace",
    "chroot",
    "su",
    "runuser",
    "busybox",
    "flock",
    "unshare",
    "caffeinate",
];

const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "ash"];

/// The options of `find` and `fd` before a command.
const EXECUTING: [&str; 6] = ["-exec", "-execdir", "-ok", "-okdir", "--exec", "-x"];

/// How many places in the arguments of a wrapper are tried as the beginning of a command. Which of its
/// options take a value differs from one to the next, so each word might be one.
const STARTS_MAX: usize = 6;

/// How many commands are looked for in the arguments of one. Each copies what is behind it, so a chain of
/// thousands would take quadratic time.
const COMMANDS_MAX: usize = 32;

/// Removes assignments and words of the grammar in front of a command.
pub(super) fn without_prefix(mut words: Vec<String>) -> Vec<String> {
    let is_prefix = |word: &String| RESERVED.contains(&word.as_str()) || is_assignment(word);
    let prefix_count = words.iter().take_while(|word| is_prefix(word)).count();
    words.drain(..prefix_count);
    words
}

/// Returns whether a word is an assignment such as `PATH=/tmp`.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}

/// Returns what a command runs. Only one level is looked at, and the caller asks again for scripts.
pub(super) fn inner(words: &[String]) -> Inner {
    let mut inner = Inner::default();
    let mut queue = vec![words.to_vec()];
    while let Some(words) = queue.pop() {
        if inner.commands.len() > COMMANDS_MAX {
            inner.is_cut = true;
            break;
        }
        let [name, arguments @ ..] = words.as_slice() else { continue };
        let name = base_name(name).to_ascii_lowercase();
        if name == "eval" {
            inner.scripts.push(arguments.join(" "));
        } else if SHELLS.contains(&name.as_str()) {
            inner.scripts.extend(script_of(arguments));
        } else if WRAPPERS.contains(&name.as_str()) {
            if name == "su" || name == "runuser" || name == "watch" || name == "flock" {
                inner.scripts.extend(arguments.iter().filter(|word| word.contains(' ')).cloned());
            }
            let found = wrapped(arguments);
            if let Some(first) = found.first() {
                queue.push(first.clone());
            }
            inner.commands.extend(found);
        } else if matches!(name.as_str(), "find" | "fd" | "fdfind") {
            for (place, _) in
                arguments.iter().enumerate().filter(|(_, word)| EXECUTING.contains(&word.as_str()))
            {
                let command: Vec<_> = arguments
                    .iter()
                    .skip(place + 1)
                    .take_while(|word| !matches!(word.as_str(), ";" | "+"))
                    .cloned()
                    .collect();
                queue.push(command.clone());
                inner.commands.push(command);
            }
        }
    }
    inner.commands.retain(|words| !words.is_empty());
    inner
}

/// Returns the commands that the arguments of a wrapper may be.
fn wrapped(arguments: &[String]) -> Vec<Vec<String>> {
    let is_start = |(_, word): &(usize, &String)| {
        !word.starts_with('-')
            && !is_assignment(word)
            && !word.starts_with(|it: char| it.is_ascii_digit())
    };
    let starts = arguments.iter().enumerate().filter(is_start).map(|(place, _)| place);
    // The first is the command unless an option took it as its value.
    let mut found = Vec::new();
    for start in starts.take(STARTS_MAX) {
        found.push(arguments.iter().skip(start).cloned().collect());
        let before = start.checked_sub(1).and_then(|place| arguments.get(place));
        if !before.is_some_and(|before| before.starts_with('-')) {
            break;
        }
    }
    found
}

/// Returns the script in the arguments of a shell: the word after an option with a `c`, or what a
/// here-string gives it.
fn script_of(arguments: &[String]) -> Option<String> {
    let is_command =
        |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    let after = arguments.iter().position(is_command).map_or(0, |place| place + 1);
    let script = arguments
        .iter()
        .skip(after)
        .find(|word| !word.starts_with('-') && !word.starts_with('+'))?;
    // Without `-c` it is a file or a here-string; only the latter has several words.
    (after > 0 || script.contains(char::is_whitespace)).then(|| script.clone())
}
