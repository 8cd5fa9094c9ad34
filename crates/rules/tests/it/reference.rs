//! Generated calls against generated rules, compared with a reference that is slow and obvious.

use quipu_rules::{Call, Decision, RuleSet, ToolKind};

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
}

/// A rule with its patterns taken apart.
struct Plain {
    kind: Option<ToolKind>,
    path: Option<Vec<&'static str>>,
    command: Option<Vec<&'static str>>,
    content: Option<&'static str>,
    decision: Decision,
}

const DIRECTORIES: [&str; 4] = ["src", "docs", "db", "web"];
const FILES: [&str; 5] = ["a.rs", "b.md", "c.sql", "d.rs", "e"];
const COMMANDS: [&str; 5] = ["git", "rm", "cargo", "make", "psql"];
const ARGUMENTS: [&str; 6] = ["push", "-f", "--force", "test", "all", "-x"];
const WORDS: [&str; 4] = ["todo", "unsafe", "secret", "fn"];

fn rule(numbers: &mut Numbers) -> (Plain, String) {
    let kind = [None, Some(ToolKind::Shell), Some(ToolKind::Edit)][numbers.below(3)];
    let mut fields = match kind {
        Some(ToolKind::Shell) => "tool: shell\n".to_owned(),
        Some(_) => "tool: edit\n".to_owned(),
        None => String::new(),
    };
    let mut plain =
        Plain { kind, path: None, command: None, content: None, decision: Decision::Warn };
    if numbers.below(2) == 0 {
        let parts: Vec<_> = match numbers.below(4) {
            0 => vec![numbers.pick(&DIRECTORIES), "**"],
            1 => vec!["**", numbers.pick(&FILES)],
            2 => vec![numbers.pick(&DIRECTORIES), "*", numbers.pick(&FILES)],
            _ => vec![numbers.pick(&DIRECTORIES), "**", numbers.pick(&["*.rs", "*.md", "*"])],
        };
        fields += &format!("path: '{}'\n", parts.join("/"));
        plain.path = Some(parts);
    } else if kind != Some(ToolKind::Edit) {
        let mut words = vec![numbers.pick(&COMMANDS)];
        for _ in 0..numbers.below(3) {
            words.push(numbers.pick(&["**", "*", "push", "-f", "--force", "-*", "test"]));
        }
        fields += &format!("command: '{}'\n", words.join(" "));
        plain.command = Some(words);
    }
    if kind == Some(ToolKind::Edit) && numbers.below(3) == 0 {
        plain.content = Some(numbers.pick(&WORDS));
        fields += &format!("content: '{}'\n", plain.content.unwrap());
    }
    plain.decision = [Decision::Warn, Decision::Ask, Decision::Deny][numbers.below(3)];
    (Plain { ..plain }, fields + &format!("decision: {}\n", plain.decision))
}

/// A call with what it means: the paths below the root, and the commands.
struct Made {
    call: Call,
    paths: Vec<Vec<String>>,
    commands: Vec<Vec<String>>,
}

/// Returns a call from a directory that no rule is about: in one that is, every argument would be a file.
fn neutral(tool: &str, kind: ToolKind) -> Call {
    Call { directory: "/work/app/tmp".to_owned(), ..call(tool, kind) }
}

fn made(numbers: &mut Numbers) -> Made {
    let path = |numbers: &mut Numbers| -> Vec<String> {
        let mut parts: Vec<String> =
            (0..numbers.below(3)).map(|_| numbers.pick(&DIRECTORIES).to_owned()).collect();
        parts.push(numbers.pick(&FILES).to_owned());
        parts
    };
    let written = |numbers: &mut Numbers, parts: &[String]| match numbers.below(3) {
        0 => format!("/work/app/{}", parts.join("//")),
        1 => format!("/work/./app/x/../{}", parts.join("/./")),
        _ => format!("/WORK/app/{}", parts.join("/").to_uppercase()),
    };
    if numbers.below(2) == 0 {
        let parts = path(numbers);
        let content: Vec<_> = (0..numbers.below(5)).map(|_| numbers.pick(&WORDS)).collect();
        let call = Call {
            paths: vec![written(numbers, &parts)],
            content: Some(content.join(" ")),
            ..neutral("Write", ToolKind::Edit)
        };
        return Made { call, paths: vec![parts], commands: Vec::new() };
    }
    let (mut texts, mut paths, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..=numbers.below(3) {
        let mut words = vec![numbers.pick(&COMMANDS).to_owned()];
        words.extend((0..numbers.below(4)).map(|_| numbers.pick(&ARGUMENTS).to_owned()));
        let mut text = words.clone();
        if numbers.below(2) == 0 {
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
    let command = texts.join([" && ", "; ", " | ", "\n"][numbers.below(4)]);
    Made {
        call: Call { command: Some(command), ..neutral("Bash", ToolKind::Shell) },
        paths,
        commands,
    }
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

fn reference(rules: &[(Plain, String)], made: &Made) -> Option<Decision> {
    let applies = |rule: &Plain| {
        let path = rule.path.as_ref().is_none_or(|pattern| {
            // `a/**` is also the directory `a`, and nothing here is called like one.
            made.paths.iter().any(|parts| parts_match(pattern, parts, &word_matches))
        });
        let command = rule.command.as_ref().is_none_or(|pattern| {
            let open = [pattern.as_slice(), &["**"]].concat();
            made.commands.iter().any(|words| parts_match(&open, words, &word_matches))
        });
        let content = rule.content.is_none_or(|wanted| {
            made.call
                .content
                .as_ref()
                .is_some_and(|text| text.split(' ').any(|word| word.contains(wanted)))
        });
        rule.kind.is_none_or(|kind| kind == made.call.kind) && path && command && content
    };
    rules.iter().filter(|(rule, _)| applies(rule)).map(|(rule, _)| rule.decision).max()
}

#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn cases() -> usize {
    let wanted = std::env::var("QUIPU_CASES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(3000)
}

/// `QUIPU_CASES` sets how many calls are made; 100,000 take some minutes without optimization.
#[test]
fn generated_calls_are_decided_as_by_the_reference() {
    let cases = cases();
    let mut numbers = Numbers(17);
    let rules: Vec<_> = (0..200).map(|_| rule(&mut numbers)).collect();
    // Two hundred rules together decide nearly every call, so that each is compared with a few as well.
    let sets: Vec<(Vec<&(Plain, String)>, RuleSet)> = rules
        .chunks(10)
        .map(|chunk| {
            let mut set = RuleSet::default();
            for (_, fields) in chunk {
                set.add(parsed("/r.md", fields));
            }
            assert!(set.broken.is_empty());
            (chunk.iter().collect(), set)
        })
        .collect();
    let mut all = RuleSet::default();
    for (_, fields) in &rules {
        all.add(parsed("/r.md", fields));
    }
    let mut counts = [0_usize; 4];
    for _ in 0..cases {
        let made = made(&mut numbers);
        let expected = reference(&rules, &made);
        assert_eq!(all.decide(&made.call).decision, expected, "{:?}", made.call);
        let place = numbers.below(sets.len());
        let expected = reference(&rules[place * 10..(place + 1) * 10], &made);
        let decided = sets[place].1.decide(&made.call).decision;
        assert_eq!(
            decided,
            expected,
            "{:?}: {:?}",
            made.call,
            sets[place].0.iter().map(|it| &it.1).collect::<Vec<_>>()
        );
        counts[decided.map_or(0, |decision| decision as usize + 1)] += 1;
    }
    assert!(counts.iter().all(|count| *count > cases / 50), "every answer occurs: {counts:?}");
}
