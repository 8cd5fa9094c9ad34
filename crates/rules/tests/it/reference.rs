//! Generated calls against generated rules, compared with a reference that is slow and obvious.
//!
//! The reference never parses a command: a call is made together with what it means. The text of a shell is
//! made from words, directories and files, and the reference gets these.

use quipu_rules::{Call, Decision, Failing, RuleSet, ToolKind};

use crate::support::{call, parsed};

/// Numbers that are equal in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    /// Returns true in one of `count` cases.
    fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Which tools a rule is about.
#[derive(Clone, Copy, Debug)]
enum Tools {
    Any,
    Kind(ToolKind),
    /// All of one server.
    Server(&'static str),
}

/// What a rule looks for in texts.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// This text.
    Text(&'static str),
    /// This letter and some digits.
    Number(char),
    /// An expression that is none.
    Broken,
}

/// The parts of a pattern for paths.
type Parts = Vec<&'static str>;

/// A rule with its patterns taken apart.
struct Plain {
    tools: Tools,
    /// The path, and one that is excluded.
    path: Option<(Parts, Option<Parts>)>,
    words: Option<Parts>,
    expression: Option<Wanted>,
    content: Option<Wanted>,
    failing: Option<Failing>,
    decision: Decision,
}

const DIRECTORIES: [&str; 4] = ["src", "docs", "db", "web"];
const FILES: [&str; 5] = ["a.rs", "b.md", "c.sql", "d.rs", "e"];
const COMMANDS: [&str; 5] = ["git", "rm", "cargo", "make", "psql"];
const ARGUMENTS: [&str; 7] = ["push", "-f", "--force", "test", "all", "-x", "t7"];
const WORDS: [&str; 5] = ["todo", "unsafe", "secret", "fn", "k42"];
const SERVERS: [&str; 2] = ["files", "github"];

fn path_pattern(numbers: &mut Numbers) -> Parts {
    match numbers.below(4) {
        0 => vec![numbers.pick(&DIRECTORIES), "**"],
        1 => vec!["**", numbers.pick(&FILES)],
        2 => vec![numbers.pick(&DIRECTORIES), "*", numbers.pick(&FILES)],
        _ => vec![numbers.pick(&DIRECTORIES), "**", numbers.pick(&["*.rs", "*.md", "*"])],
    }
}

fn wanted(numbers: &mut Numbers) -> Wanted {
    match numbers.below(8) {
        0 => Wanted::Broken,
        1 | 2 => Wanted::Number(['k', 't'][numbers.below(2)]),
        _ => Wanted::Text(numbers.pick(&["todo", "unsafe", "secret", "push", "force"])),
    }
}

impl Wanted {
    fn written(self) -> String {
        match self {
            Self::Text(text) => text.to_owned(),
            Self::Number(letter) => format!("{letter}[0-9]+"),
            Self::Broken => "(".to_owned(),
        }
    }

    /// Returns whether it is in a text; `None` if that cannot be told.
    fn is_in(self, text: &str) -> Option<bool> {
        match self {
            Self::Text(wanted) => Some(text.contains(wanted)),
            Self::Number(letter) => {
                let mut pairs = text.chars().zip(text.chars().skip(1));
                Some(pairs.any(|(one, next)| one == letter && next.is_ascii_digit()))
            }
            Self::Broken => None,
        }
    }
}

fn tools(numbers: &mut Numbers) -> (Tools, String) {
    let tools = match numbers.below(8) {
        0 | 1 => Tools::Any,
        2 | 3 => Tools::Kind(ToolKind::Shell),
        4 | 5 => Tools::Kind(ToolKind::Edit),
        6 => Tools::Kind(ToolKind::Mcp),
        _ => Tools::Server(numbers.pick(&SERVERS)),
    };
    let field = match tools {
        Tools::Any => String::new(),
        Tools::Kind(ToolKind::Shell) => "tool: shell\n".to_owned(),
        Tools::Kind(ToolKind::Edit) => "tool: edit\n".to_owned(),
        Tools::Kind(_) => "tool: mcp\n".to_owned(),
        Tools::Server(server) => format!("tool: 'mcp__{server}__*'\n"),
    };
    (tools, field)
}

fn rule(numbers: &mut Numbers) -> (Plain, String) {
    let (tools, mut fields) = tools(numbers);
    let mut plain = Plain {
        tools,
        path: None,
        words: None,
        expression: None,
        content: None,
        failing: [None, None, Some(Failing::Open), Some(Failing::Closed)][numbers.below(4)],
        decision: [Decision::Warn, Decision::Ask, Decision::Deny][numbers.below(3)],
    };
    let is_shell = matches!(tools, Tools::Kind(ToolKind::Shell));
    if numbers.once_in(2) {
        let parts = path_pattern(numbers);
        let excluded = numbers.once_in(3).then(|| path_pattern(numbers));
        let excluding = excluded.iter().map(|parts| format!(", '!{}'", parts.join("/")));
        fields += &format!("path: ['{}'{}]\n", parts.join("/"), excluding.collect::<String>());
        plain.path = Some((parts, excluded));
    } else if is_shell && numbers.once_in(3) {
        let wanted = wanted(numbers);
        fields += &format!("command: '/{}/'\n", wanted.written());
        plain.expression = Some(wanted);
    } else if is_shell || matches!(tools, Tools::Any) {
        let mut words = vec![numbers.pick(&COMMANDS)];
        for _ in 0..numbers.below(3) {
            words.push(numbers.pick(&["**", "*", "push", "-f", "--force", "-*", "test"]));
        }
        fields += &format!("command: '{}'\n", words.join(" "));
        plain.words = Some(words);
    }
    if !is_shell && numbers.once_in(3) {
        let wanted = wanted(numbers);
        fields += &format!("content: '{}'\n", wanted.written());
        plain.content = Some(wanted);
    }
    let failing = plain.failing.map(|failing| format!("fail: {failing}\n")).unwrap_or_default();
    let decision = plain.decision;
    (plain, fields + &failing + &format!("decision: {decision}\n"))
}

/// A call with what it means: the paths below the root, and the commands.
struct Made {
    call: Call,
    paths: Vec<Vec<String>>,
    commands: Vec<Vec<String>>,
    /// The texts that an expression about commands sees.
    texts: Vec<String>,
    /// Whether its command can be read to its end.
    is_whole: bool,
}

/// Returns a call from a directory that no rule is about: in one that is, every argument would be a file.
fn neutral(tool: &str, kind: ToolKind) -> Call {
    Call { directory: "/work/app/tmp".to_owned(), ..call(tool, kind) }
}

fn path(numbers: &mut Numbers) -> Vec<String> {
    let mut parts: Vec<String> =
        (0..numbers.below(3)).map(|_| numbers.pick(&DIRECTORIES).to_owned()).collect();
    parts.push(numbers.pick(&FILES).to_owned());
    parts
}

fn written(numbers: &mut Numbers, parts: &[String]) -> String {
    match numbers.below(3) {
        0 => format!("/work/app/{}", parts.join("//")),
        1 => format!("/work/./app/x/../{}", parts.join("/./")),
        _ => format!("/WORK/app/{}", parts.join("/").to_uppercase()),
    }
}

fn content(numbers: &mut Numbers) -> String {
    let words: Vec<_> = (0..numbers.below(5)).map(|_| numbers.pick(&WORDS)).collect();
    words.join(" ")
}

fn without_command(call: Call, paths: Vec<Vec<String>>) -> Made {
    Made { call, paths, commands: Vec::new(), texts: Vec::new(), is_whole: true }
}

fn edit(numbers: &mut Numbers) -> Made {
    let parts = path(numbers);
    let call = Call {
        paths: vec![written(numbers, &parts)],
        content: Some(content(numbers)),
        ..neutral("Write", ToolKind::Edit)
    };
    without_command(call, vec![parts])
}

/// A patch of several files, which a host sends as one call.
fn patch(numbers: &mut Numbers) -> Made {
    let paths: Vec<_> = (0..=numbers.below(3)).map(|_| path(numbers)).collect();
    let call = Call {
        paths: paths.iter().map(|parts| format!("../{}", parts.join("/"))).collect(),
        content: Some(content(numbers)),
        ..neutral("apply_patch", ToolKind::Edit)
    };
    without_command(call, paths)
}

fn mcp(numbers: &mut Numbers) -> Made {
    let name = format!("mcp__{}__write", numbers.pick(&SERVERS));
    let parts = path(numbers);
    let mut call = Call {
        paths: vec![written(numbers, &parts)],
        content: Some(content(numbers)),
        ..neutral(&name, ToolKind::Mcp)
    };
    // One host names the tool without its server.
    if numbers.once_in(2) {
        call.aliases = vec![std::mem::replace(&mut call.tool, "write".to_owned())];
    }
    without_command(call, vec![parts])
}

fn shell(numbers: &mut Numbers) -> Made {
    let (mut texts, mut paths, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..=numbers.below(3) {
        let mut words = vec![numbers.pick(&COMMANDS).to_owned()];
        words.extend((0..numbers.below(4)).map(|_| numbers.pick(&ARGUMENTS).to_owned()));
        let mut text = words.clone();
        if numbers.once_in(2) {
            let parts = path(numbers);
            let written = written(numbers, &parts);
            text.push(format!("'{written}'"));
            words.push(written);
            paths.push(parts);
        }
        let text = text.join(" ");
        texts.push(match numbers.below(4) {
            0 => format!("bash -c \"{text}\""),
            1 => format!("A=1 sudo {text}"),
            2 => format!("({text})"),
            _ => text,
        });
        commands.push(words);
    }
    // In another directory at last, where a name alone is a path. `cd` may have failed, so both are possible;
    // its argument is a path as well.
    if numbers.once_in(4) {
        let (directory, file) = (numbers.pick(&DIRECTORIES), numbers.pick(&FILES));
        texts.extend([format!("cd ../{directory}"), format!("tee {file}")]);
        for parts in [vec![directory], vec![directory, file], vec!["tmp", file]] {
            paths.push(parts.into_iter().map(str::to_owned).collect());
        }
        for words in
            [["cd".to_owned(), format!("../{directory}")], ["tee".to_owned(), file.to_owned()]]
        {
            commands.push(words.to_vec());
        }
    }
    let mut command = texts.join([" && ", "; ", " | ", "\n"][numbers.below(4)]);
    let is_whole = !numbers.once_in(8);
    if !is_whole {
        command += "; echo 'open";
        commands.push(vec!["echo".to_owned(), "open".to_owned()]);
    }
    let mut seen: Vec<_> = commands.iter().map(|words| words.join(" ")).collect();
    seen.push(command.clone());
    let call = Call { command: Some(command), ..neutral("Bash", ToolKind::Shell) };
    Made { call, paths, commands, texts: seen, is_whole }
}

/// Returns whether parts match, trying every length for `**`.
fn parts_match(pattern: &[&str], parts: &[String], one: &dyn Fn(&str, &str) -> bool) -> bool {
    match pattern.split_first() {
        None => parts.is_empty(),
        Some((&"**", rest)) => {
            (0..=parts.len()).any(|skipped| parts_match(rest, &parts[skipped..], one))
        }
        Some((first, rest)) => {
            !parts.is_empty() && one(first, &parts[0]) && parts_match(rest, &parts[1..], one)
        }
    }
}

/// Returns whether a word matches a pattern with at most one star.
fn word_matches(pattern: &str, word: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == word,
        Some((start, end)) => {
            word.len() >= start.len() + end.len() && word.starts_with(start) && word.ends_with(end)
        }
    }
}

/// What can be said about one field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fits {
    Yes,
    No,
    /// Nobody knows: it was not read, or the pattern is broken.
    Unknown,
}

impl Plain {
    fn tools_fit(&self, call: &Call) -> bool {
        match self.tools {
            Tools::Any => true,
            Tools::Kind(kind) => kind == call.kind,
            Tools::Server(server) => {
                let mut names = std::iter::once(&call.tool).chain(&call.aliases);
                names.any(|name| name.starts_with(&format!("mcp__{server}__")))
            }
        }
    }

    fn path_fits(&self, made: &Made) -> Fits {
        let Some((pattern, excluded)) = &self.path else { return Fits::Yes };
        let fits = |pattern: &[&str], parts: &[String]| {
            // `a/**` is also the directory `a`.
            let is_directory = pattern.split_last().is_some_and(|(last, before)| {
                *last == "**" && parts_match(before, parts, &word_matches)
            });
            is_directory || parts_match(pattern, parts, &word_matches)
        };
        let is_match = made.paths.iter().any(|parts| {
            fits(pattern, parts) && !excluded.as_ref().is_some_and(|excluded| fits(excluded, parts))
        });
        match (is_match, made.is_whole) {
            (true, _) => Fits::Yes,
            (false, true) => Fits::No,
            (false, false) => Fits::Unknown,
        }
    }

    fn command_fits(&self, made: &Made) -> Fits {
        let without = if made.is_whole { Fits::No } else { Fits::Unknown };
        if let Some(pattern) = &self.words {
            let open = [pattern.as_slice(), &["**"]].concat();
            let mut commands = made.commands.iter();
            let is_match = commands.any(|words| parts_match(&open, words, &word_matches));
            return match (is_match, &made.call.command) {
                (true, _) => Fits::Yes,
                (false, Some(_)) => without,
                (false, None) => Fits::No,
            };
        }
        let Some(wanted) = self.expression else { return Fits::Yes };
        if made.call.command.is_none() {
            return Fits::No;
        }
        let found: Option<Vec<_>> = made.texts.iter().map(|text| wanted.is_in(text)).collect();
        match found {
            None => Fits::Unknown,
            Some(found) if found.contains(&true) => Fits::Yes,
            Some(_) => without,
        }
    }

    fn content_fits(&self, made: &Made) -> Fits {
        let Some(wanted) = self.content else { return Fits::Yes };
        let Some(text) = &made.call.content else { return Fits::No };
        match wanted.is_in(text) {
            None => Fits::Unknown,
            Some(true) => Fits::Yes,
            Some(false) => Fits::No,
        }
    }

    fn applies(&self, made: &Made, failing: Failing) -> bool {
        let fits = [self.path_fits(made), self.command_fits(made), self.content_fits(made)];
        let is_unknown = fits.contains(&Fits::Unknown);
        let is_closed = self.failing.unwrap_or(failing) == Failing::Closed;
        self.tools_fit(&made.call) && !fits.contains(&Fits::No) && (!is_unknown || is_closed)
    }
}

fn reference(rules: &[(Plain, String)], made: &Made, failing: Failing) -> Option<Decision> {
    let applying = rules.iter().filter(|(rule, _)| rule.applies(made, failing));
    applying.map(|(rule, _)| rule.decision).max()
}

fn set(rules: &[(Plain, String)], failing: Failing) -> RuleSet {
    let mut set = RuleSet { failing, ..RuleSet::default() };
    for (_, fields) in rules {
        set.add(parsed("/r.md", fields));
    }
    assert_eq!(set.broken, [], "all of them are rules");
    set
}

#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn cases() -> usize {
    let wanted = std::env::var("QUIPU_CASES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(CASES)
}

/// How many calls are made in a few seconds without optimization.
const CASES: usize = 15_000;

/// `QUIPU_CASES` sets how many calls are made.
#[test]
fn generated_calls_are_decided_as_by_the_reference() {
    let cases = cases();
    let mut numbers = Numbers(17);
    let rules: Vec<_> = (0..200).map(|_| rule(&mut numbers)).collect();
    let modes = [Failing::Open, Failing::Closed];
    let all = modes.map(|failing| set(&rules, failing));
    // Two hundred rules together decide nearly every call, so that each is compared with a few as well.
    let chunks: Vec<_> = rules.chunks(5).collect();
    let few: Vec<_> = chunks.iter().map(|rules| modes.map(|failing| set(rules, failing))).collect();
    let mut counts = [0_usize; 4];
    for number in 0..cases {
        let made = match numbers.below(8) {
            0 | 1 => edit(&mut numbers),
            2 => patch(&mut numbers),
            3 => mcp(&mut numbers),
            _ => shell(&mut numbers),
        };
        let mode = number % 2;
        let expected = reference(&rules, &made, modes[mode]);
        assert_eq!(all[mode].decide(&made.call).decision, expected, "{:?}", made.call);
        let place = numbers.below(chunks.len());
        let expected = reference(chunks[place], &made, modes[mode]);
        let decided = few[place][mode].decide(&made.call).decision;
        let fields: Vec<_> = chunks[place].iter().map(|it| &it.1).collect();
        assert_eq!(decided, expected, "{:?}, {}: {fields:?}", made.call, modes[mode]);
        counts[decided.map_or(0, |decision| decision as usize + 1)] += 1;
    }
    assert!(counts.iter().all(|count| *count > cases / 50), "every answer occurs: {counts:?}");
}
