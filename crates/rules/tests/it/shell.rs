//! What is seen of a command line.

use quipu_rules::shell::{COMMAND_SIZE_BYTES_MAX, COMMANDS_MAX, Script};

fn commands(text: &str) -> Vec<String> {
    let script = Script::parse(text, &["/work"], "/home/ada");
    script.commands.iter().map(|command| command.words.join(" ")).collect()
}

fn sees(text: &str, wanted: &str) -> bool {
    commands(text).iter().any(|command| command == wanted)
}

#[test]
fn operators_separate_commands() {
    assert_eq!(commands("a b; c && d || e | f & g\nh"), ["a b", "c", "d", "e", "f", "g", "h"]);
    assert_eq!(commands("(a; b) ; { c; }"), ["a", "b", "c"]);
    assert_eq!(commands("if a; then b; else c; fi"), ["a", "b", "c", "fi"]);
    assert_eq!(commands("a # b; c\nd"), ["a", "d"]);
}

#[test]
fn quotes_and_escapes_are_taken_off() {
    for text in [
        "rm -rf x",
        "'rm' -rf x",
        "r\"m\" -rf x",
        "r\\m -rf x",
        "rm '-r'f x",
        "rm \\\n -rf x",
        "$'rm' -rf x",
        "$'\\x72m' -rf x",
        "$'\\162m' -rf x",
        "rm\t-rf  x",
    ] {
        assert!(sees(text, "rm -rf x"), "{text}: {:?}", commands(text));
    }
    assert_eq!(commands("echo 'a; b' \"c && d\""), ["echo a; b c && d"]);
}

#[test]
fn assignments_and_wrappers_do_not_hide_a_command() {
    for text in [
        "A=1 rm -rf x",
        "env A=1 rm -rf x",
        "env -i A=1 rm -rf x",
        "sudo rm -rf x",
        "sudo -u ada rm -rf x",
        "nohup rm -rf x &",
        "timeout 5 rm -rf x",
        "nice -n 5 rm -rf x",
        "command rm -rf x",
        "sudo env A=1 nice rm -rf x",
        "time rm -rf x",
        "time -p rm -rf x",
        "if time -p ! rm -rf x; then y; fi",
        "! rm -rf x",
        "exec rm -rf x",
        "find . -name y -exec rm -rf x \\;",
        "xargs -n 1 rm -rf x",
        "sudo -u a -g b -h c -p d -r e -t f -C 3 rm -rf x",
        "systemd-run --user -p A=1 rm -rf x",
        "taskset -c 1 rm -rf x",
        "script -q -c 'rm -rf x' /dev/null",
        "env -S 'rm -rf x'",
        "env '-Srm -rf x'",
        "sudo -u ada bash -c 'rm -rf x'",
        "xargs -a list sh -c 'rm -rf x'",
        "trap 'rm -rf x' EXIT",
        "csh -c 'rm -rf x'",
    ] {
        assert!(sees(text, "rm -rf x"), "{text}: {:?}", commands(text));
    }
}

#[test]
fn nested_scripts_are_read() {
    for text in [
        "echo $(rm -rf x)",
        "echo \"$(rm -rf x)\"",
        "echo `rm -rf x`",
        "bash -c 'rm -rf x'",
        "sh -lc \"rm -rf x\"",
        "/bin/bash -c 'cd y && rm -rf x'",
        "eval rm -rf x",
        "eval \"rm -rf\" x",
        "sudo bash -c 'rm -rf x'",
        "diff <(rm -rf x) y",
        "bash <<'END'\nrm -rf x\nEND",
        "cat <<-END | sh\n\trm -rf x\n\tEND",
        "bash <<< 'rm -rf x'",
        "bash -c \"bash -c 'rm -rf x'\"",
        "echo \"a $(echo `rm -rf x`)\"",
        "su ada -c 'rm -rf x'",
    ] {
        assert!(sees(text, "rm -rf x"), "{text}: {:?}", commands(text));
    }
}

#[test]
fn nul_bytes_are_dropped_as_a_shell_does() {
    assert!(sees("r\0m -rf x", "rm -rf x"));
}

#[test]
fn files_of_redirections_are_kept_apart() {
    let script = Script::parse("echo a 2>err >> out.txt < in && b &> both", &["/work"], "");
    let files: Vec<_> = script.commands.iter().map(|command| command.files.clone()).collect();
    assert_eq!(files, [vec!["err", "out.txt", "in"], vec!["both"]]);
    assert_eq!(script.commands.first().unwrap().words, ["echo", "a"]);
}

#[test]
fn changes_of_the_directory_are_followed() {
    let script = Script::parse("cd a && cd ../b; rm x", &["/work"], "/home/ada");
    let last = script.commands.last().unwrap();
    assert_eq!(last.words, ["rm", "x"]);
    for directory in ["/work", "/work/a", "/work/b"] {
        assert!(last.directories.contains(&directory.to_owned()), "{directory}: {last:?}");
    }
    let home = Script::parse("cd; rm x", &["/work"], "/home/ada");
    assert!(home.commands.last().unwrap().directories.contains(&"/home/ada".to_owned()));
}

#[test]
fn what_cannot_be_read_is_said() {
    let is_complete = |text: &str| Script::parse(text, &["/work"], "").is_complete;
    assert!(is_complete("echo 'a' \"b\" $(c)"));
    for text in ["echo 'a", "echo \"a", "echo $(a", "echo `a", "a \\"] {
        assert!(!is_complete(text), "{text}");
    }
    // Whichever of these words is the command, not all were tried.
    assert!(!is_complete(&format!("sudo {} git push", "-o v ".repeat(20))));
    assert!(!is_complete(&"a;".repeat(COMMANDS_MAX + 1)));
    assert!(!is_complete(&"a".repeat(COMMAND_SIZE_BYTES_MAX + 1)));
    assert!(!is_complete(&format!("{}rm{}", "$(".repeat(50), ")".repeat(50))));
}

#[test]
fn hostile_commands_take_no_longer_than_others() {
    for text in [
        "$(".repeat(30_000),
        "`".repeat(60_000),
        "<<a\n".repeat(15_000),
        "sudo ".repeat(10_000),
        "cd x;".repeat(10_000),
    ] {
        let script = Script::parse(&text, &["/work"], "/home/ada");
        assert!(script.commands.len() <= COMMANDS_MAX);
    }
}

#[test]
fn the_options_of_git_do_not_hide_its_command() {
    for text in [
        "git --no-pager push --force",
        "git -c a=b -c c=d push --force",
        "git -C .. push --force",
        "git --git-dir=x --work-tree y push --force",
        "sudo -u ada git -P push --force",
    ] {
        assert!(sees(text, "git push --force"), "{text}: {:?}", commands(text));
    }
    assert_eq!(commands("git push --force"), ["git push --force"]);
    let script = Script::parse("git -C migrations rm 1.sql", &["/work"], "");
    let inner = script.commands.last().unwrap();
    assert_eq!(inner.words, ["git", "rm", "1.sql"]);
    assert_eq!(inner.directories, ["/work/migrations"]);
}

#[test]
fn a_command_may_run_in_several_directories() {
    let script = Script::parse("cd a; rm x", &["/one", "/two"], "");
    let last = script.commands.last().unwrap();
    assert_eq!(last.directories, ["/one", "/two", "/one/a", "/two/a"]);
    let many: Vec<_> = (0..40).map(|number| format!("/{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert!(!Script::parse("rm x", &many, "").is_complete);
}
