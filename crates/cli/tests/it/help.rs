//! The whole command reference as one snapshot, so that every change to it is reviewed.

use crate::support::Quipu;

#[test]
fn the_help_of_every_command() {
    let pages = pages(&Quipu::empty());
    let page = |(command, help): &(String, String)| {
        let space = if command.is_empty() { "" } else { " " };
        format!("$ quipu {command}{space}--help\n{help}\n")
    };
    let reference: String = pages.iter().map(page).collect();
    insta::assert_snapshot!("help", reference);
}

/// Returns all commands that can be run, such as `store create`.
pub(crate) fn commands(quipu: &Quipu) -> Vec<String> {
    let needs_more = |usage: &str| usage.starts_with("Usage:") && usage.ends_with("<COMMAND>");
    let can_run = |help: &str| !help.lines().any(needs_more);
    let pages = pages(quipu).into_iter();
    pages.filter(|(_, help)| can_run(help)).map(|(command, _)| command).collect()
}

/// Returns the help of every command.
fn pages(quipu: &Quipu) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(command) = waiting.pop() {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = quipu.ok(&arguments);
        let names: Vec<_> = subcommands(&help).map(str::to_owned).collect();
        for name in names.into_iter().rev() {
            waiting.push(command.iter().cloned().chain([name]).collect());
        }
        pages.push((command.join(" "), help));
    }
    pages
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
