//! What a command runs: behind `sudo`, in `bash -c`, after `-exec`.

use super::base_name;

/// What a command runs besides itself.
#[derive(Debug, Default)]
pub(super) struct Inner {
    /// Commands in its arguments.
    pub(super) commands: Vec<InnerCommand>,
    /// Scripts in its arguments.
    pub(super) scripts: Vec<String>,
    /// Whether there may be more.
    pub(super) is_cut: bool,
}

/// A command that another one runs.
#[derive(Debug)]
pub(super) struct InnerCommand {
    pub(super) words: Vec<String>,
    /// Where it is run, if its options say so.
    pub(super) directory: Option<String>,
}

/// Words of the grammar in front of a command. `time` takes options, so it is one of the [`WRAPPERS`].
const RESERVED: [&str; 12] =
    ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "coproc", "function"];

/// Commands that run their arguments.
const WRAPPERS: [&str; 44] = [
    "sudo",
    "doas",
    "pkexec",
    "env",
    "command",
    "builtin",
    "exec",
    "nohup",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "numactl",
    "prlimit",
    "timeout",
    "time",
    "setsid",
    "setpriv",
    "stdbuf",
    "unbuffer",
    "script",
    "xargs",
    "parallel",
    "watch",
    "strace",
    "ltrace",
    "chroot",
    "su",
    "sg",
    "runuser",
    "busybox",
    "toybox",
    "flock",
    "unshare",
    "nsenter",
    "systemd-run",
    "systemd-inhibit",
    "firejail",
    "bwrap",
    "proot",
    "fakeroot",
    "torsocks",
    "caffeinate",
    "dbus-run-session",
];

/// Those of them that also take a script as one argument.
const TAKING_SCRIPTS: [&str; 7] = ["su", "sg", "runuser", "watch", "flock", "script", "env"];

const SHELLS: [&str; 11] =
    ["sh", "bash", "zsh", "dash", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "rbash"];

/// The options of `git` in front of its command: those that take a value, and others. With one that it does
/// not know, `git` does nothing.
const GIT_VALUES: [&str; 7] =
    ["-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"];
const GIT_FLAGS: [&str; 14] = [
    "-p",
    "--paginate",
    "-P",
    "--no-pager",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-advice",
    "--bare",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "--exec-path",
];

/// The options of `find` and `fd` before a command.
const EXECUTING: [&str; 6] = ["-exec", "-execdir", "-ok", "-okdir", "--exec", "-x"];

/// How many places in the arguments of a wrapper are tried as the beginning of a command. Which of its
/// options take a value differs from one to the next, so each word might be one.
const STARTS_MAX: usize = 16;

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
        let mut found = Vec::new();
        if name == "eval" {
            inner.scripts.push(arguments.join(" "));
        } else if name == "trap" {
            inner.scripts.extend(arguments.first().cloned());
        } else if name == "git" {
            inner.commands.extend(bare_git(arguments));
        } else if SHELLS.contains(&name.as_str()) {
            inner.scripts.extend(script_of(arguments));
        } else if WRAPPERS.contains(&name.as_str()) {
            if TAKING_SCRIPTS.contains(&name.as_str()) {
                inner.scripts.extend(scripts_among(arguments));
            }
            let wrapped = wrapped(arguments);
            inner.is_cut |= wrapped.is_cut;
            found = wrapped.commands;
        } else if matches!(name.as_str(), "find" | "fd" | "fdfind") {
            found = executed(arguments);
        }
        for words in found {
            inner.commands.push(InnerCommand { words: words.clone(), directory: None });
            queue.push(words);
        }
    }
    inner.commands.retain(|command| !command.words.is_empty());
    inner
}

/// Returns `git` without the options in front of its command, if there are any, so that `git push` is also
/// `git -c a=b push`.
fn bare_git(arguments: &[String]) -> Option<InnerCommand> {
    let (mut rest, mut directory) = (arguments, None);
    while let [option, after @ ..] = rest {
        let is_flag = GIT_FLAGS.contains(&option.as_str())
            || (option.starts_with("--") && option.contains('='));
        if is_flag {
            rest = after;
        } else if GIT_VALUES.contains(&option.as_str())
            && let [value, after @ ..] = after
        {
            if option == "-C" {
                directory = Some(match directory {
                    Some(before) => format!("{before}/{value}"),
                    None => value.clone(),
                });
            }
            rest = after;
        } else {
            break;
        }
    }
    if rest.len() == arguments.len() {
        return None;
    }
    let words = std::iter::once("git".to_owned()).chain(rest.iter().cloned()).collect();
    Some(InnerCommand { words, directory })
}

/// Returns the arguments that are scripts: what has several words and is no assignment.
fn scripts_among(arguments: &[String]) -> impl Iterator<Item = String> {
    let bare = arguments.iter().map(|word| word.strip_prefix("-S").unwrap_or(word));
    let scripts = bare.filter(|word| word.contains(' ') && !is_assignment(word));
    scripts.map(str::to_owned)
}

/// Returns the commands that `find` runs.
fn executed(arguments: &[String]) -> Vec<Vec<String>> {
    let places = arguments.iter().enumerate();
    let places = places.filter(|(_, word)| EXECUTING.contains(&word.as_str()));
    let is_of_command = |word: &&String| !matches!(word.as_str(), ";" | "+");
    let command =
        |place| arguments.iter().skip(place + 1).take_while(is_of_command).cloned().collect();
    places.map(|(place, _)| command(place)).collect()
}

/// The commands that the arguments of a wrapper may be.
struct Wrapped {
    commands: Vec<Vec<String>>,
    is_cut: bool,
}

fn wrapped(arguments: &[String]) -> Wrapped {
    let is_start = |(_, word): &(usize, &String)| {
        !word.starts_with('-')
            && !is_assignment(word)
            && !word.starts_with(|it: char| it.is_ascii_digit())
    };
    let starts = arguments.iter().enumerate().filter(is_start).map(|(place, _)| place);
    // The first is the command unless an option took it as its value.
    let mut commands: Vec<Vec<String>> = Vec::new();
    for start in starts {
        if commands.len() == STARTS_MAX {
            return Wrapped { commands, is_cut: true };
        }
        commands.push(without_prefix(arguments.iter().skip(start).cloned().collect()));
        let before = start.checked_sub(1).and_then(|place| arguments.get(place));
        if !before.is_some_and(|before| before.starts_with('-')) {
            break;
        }
    }
    Wrapped { commands, is_cut: false }
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
