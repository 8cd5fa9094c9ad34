//! Examples below the help of commands, for what a list of options does not show.

/// `quipu log`.
pub(super) const LOG: &str = "\
Examples:
  quipu log tea.md                        the history of one memory
  quipu log --all --since 7d --oneline    the last week in all stores
  quipu log --actor claude --grep oolong  what a session wrote about something
  quipu log --key ci --all                everything that was done with a key";

/// `quipu events`.
pub(super) const EVENTS: &str = "\
Examples:
  quipu events sesn_… --follow            what happens now
  quipu events sesn_… --grep oolong       events that mention something
  quipu events sesn_… --type user.message --json";

/// `quipu diff`.
pub(super) const DIFF: &str = "\
Examples:
  quipu diff tea.md                       the last change of a memory
  quipu diff tea.md --at yesterday        a memory then and now
  quipu diff --at 'yesterday 14:00'       a whole store then and now
  quipu diff notes@2026-11-01 notes@2026-11-15 --stat
  quipu diff notes team                   two stores";

/// `quipu store copy`.
pub(super) const STORE_COPY: &str = "\
Examples:
  quipu store copy notes experiment       to try something out
  quipu store copy notes@yesterday before the state before today's changes

Memories get new ids and one version each; the history stays with the original.";

/// `quipu restore`.
pub(super) const RESTORE: &str = "\
Examples:
  quipu restore tea.md                    undo the last change; repeat to go back further
  quipu restore memver_…                  go back to an old version
  quipu restore memver_… --to old-tea.md  the same, and move the memory to another path
  quipu restore projects --at yesterday --dry-run
                                          what it takes to have a directory as it was

A restore is a change of its own: nothing is lost, and it can be undone.";

/// `quipu revert`.
pub(super) const REVERT: &str = "\
Examples:
  quipu revert --session 'nightly review' --dry-run    see the plan: what, why, and the difference
  quipu revert --session 'nightly review' --expect 3f9a01c2
                                                       carry out exactly that plan
  quipu revert --key ci --since 2h --all               what a key did in all stores, lately
  quipu revert --actor ada --path projects --store notes

A revert prints the command that takes it back.";

/// `quipu redact`.
pub(super) const REDACT: &str = "\
Example, after a secret was written to memories:
  quipu redact --all --matching 'the secret' --and-heads --dry-run
                                          list everything that holds it
  quipu redact --all --matching 'the secret' --and-heads --expect 1f0c9a7e
                                          replace it in live memories, erase it from every file
  quipu redact memver_… memver_…          erase the text of these versions";

/// `quipu receipts`.
pub(super) const RECEIPTS: &str = "\
Examples:
  quipu receipts                          list them, the newest first
  quipu receipts rcpt_… --json            one in full, for an auditor";

/// `quipu search`.
pub(super) const SEARCH: &str = "\
Examples:
  quipu search green tea                  memories with both words first
  quipu search '\"green tea\" OR ool*'      a phrase, or a prefix
  quipu search tag:recipe --where 'rating>=4'
  quipu search kettle --all               in all stores";

/// `quipu suggest`.
pub(super) const SUGGEST: &str = "\
Examples:
  quipu suggest 'deploy the billing service'
  quipu suggest --file src/main.rs --budget 500
  jq -r .prompt | quipu suggest -         in the hook of a host";

/// `quipu mount`.
pub(super) const MOUNT: &str = "\
Examples:
  quipu mount --store notes --root ~/memory         ~/memory/notes, until Ctrl-C
  quipu mount --store notes --store team:ro --detach
  quipu mount --store 'notes@yesterday 14:00'       as it was, read-only
  diff -r ~/memory/notes/.quipu/at/yesterday ~/memory/notes
  quipu unmount --root ~/memory";

/// `quipu import`.
pub(super) const IMPORT: &str = "\
Examples:
  quipu import ~/vault --dry-run          see what would be imported
  quipu import ~/vault --store notes
  quipu import conversations.json --into chats";

/// `quipu key create`.
pub(super) const KEY_CREATE: &str = "\
Examples:
  quipu key create --role read_only --store notes --name reporting --expires 30d
  quipu key create --role read_write --name app --forward     it may also use the upstream";

/// `quipu session show`.
pub(super) const SESSION_SHOW: &str = "\
Examples:
  quipu session show sesn_…               everything that the session changed, as one diff
  quipu session show sesn_… --stat        only how many lines of which memories";

/// `quipu session create`.
pub(super) const SESSION_CREATE: &str = "\
Example:
  quipu session create --title 'nightly review' --store notes --store team:ro";

/// `quipu mcp install`.
pub(super) const MCP_INSTALL: &str = "\
Examples:
  quipu mcp install claude-code           for all projects of this user
  quipu mcp install cursor --project      for this project, to be committed
  quipu mcp install codex --store notes --read-only";

/// `quipu model install`.
pub(super) const MODEL_INSTALL: &str = "\
Examples:
  quipu model install all-MiniLM-L6-v2    a known name, with pinned digests
  quipu model install ./potion-base-8M    a directory
  quipu model install https://example.com/models/tiny --name tiny --sha256 53aa5117…";

/// `quipu ui`.
pub(super) const UI: &str = "\
Examples:
  quipu ui                                open the inspector in the browser
  quipu ui --role read_only --store notes --print
                                          a link for somebody who may only read these notes
  quipu ui --url https://memory.example.com

The link is an argument of the browser, so other users of the machine may see it in the list of \
processes. On a shared machine, use `--print` and paste the link.";

/// `quipu move`.
pub(super) const MOVE: &str = "\
Examples:
  quipu move --from ~/.local/share/quipu --to postgres://quipu@db.example.org/quipu
  quipu move --from postgres://quipu@db.example.org/quipu --to ./copy --dry-run";

/// `quipu hook install`.
pub(super) const HOOK_INSTALL: &str = "\
Examples:
  quipu hook install claude-code           for all projects of this user
  quipu hook install codex --project       for the project in the current directory
  quipu hook install claude-code --store notes --fail closed
  quipu hook install cursor --dry-run      print the new settings";

/// `quipu rules check`.
pub(super) const RULES_CHECK: &str = "\
Examples:
  quipu rules check                        find broken, contradictory and dead rules
  quipu rules check --command 'git push --force'
  quipu rules check --path migrations/0001.sql --content 'DROP TABLE users'
  quipu rules check --input call.json      a call as a host has sent it";
