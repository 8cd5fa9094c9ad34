//! The whole command reference as one snapshot, so that every change to it is reviewed.

use crate::support::Quipu;

#[test]
fn the_help_of_every_command() {
    let quipu = Quipu::empty();
    let mut reference = String::new();
    let mut waiting = vec![Vec::new()];
    while let Some(command) = waiting.pop() {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = quipu.ok(&arguments);
        reference += &format!("$ quipu {}\n{help}\n", arguments.join(" "));
        let names: Vec<_> = subcommands(&help).map(str::to_owned).collect();
        for name in names.into_iter().rev() {
            waiting.push(command.iter().cloned().chain([name]).collect());
        }
    }
    insta::assert_snapshot!("help", reference);
}

/// Returns the names in the list of commands, without `help` itself.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let list = help.split_once("Commands:\n").map_or("", |(_, list)| list);
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
}
