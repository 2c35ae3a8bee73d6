//! Selects the conversation to name in a request: `--conversation`, else `$CHORUS_CONVERSATION`, else `@`, by which the
//! daemon means the one chosen with `conversations use`, or `main`.

use clap::ArgMatches;
use clap::error::ErrorKind;

use crate::app::App;
use crate::host_select::has_own_variables;

/// The conversation chosen with `conversations use`.
pub const SELECTED: &str = "@";

/// The conversation that every agent has.
pub const MAIN: &str = "main";

/// The commands, and groups of commands, that use no conversation.
const COMMANDS_WITHOUT_CONVERSATION: [&str; 29] = [
    "agent",
    "approvals",
    "audit",
    "backup",
    "completions",
    "config",
    "conversations new",
    "conversations rename",
    "conversations use",
    "daemon",
    "doctor",
    "events",
    "help",
    "import",
    "man",
    "memory",
    "models",
    "permissions",
    "schedule",
    "session expire",
    "session import",
    "settings",
    "status",
    "tasks",
    "top",
    "tour",
    "trash",
    "usage",
    "web",
];

/// Checks that the command of a parsed command line uses a conversation, if --conversation names one.
///
/// # Errors
/// The usage error to print.
pub fn check_option(root: &ArgMatches) -> Result<(), clap::Error> {
    let Some(conversation) = root.get_one::<String>("conversation") else { return Ok(()) };
    let below = std::iter::successors(root.subcommand(), |(_, matches)| matches.subcommand());
    let names: Vec<&str> = below.map(|(name, _)| name).collect();
    let is_unused = |count| COMMANDS_WITHOUT_CONVERSATION.contains(&&*names[..count].join(" "));
    if !(1..=names.len()).any(is_unused) {
        return Ok(());
    }
    let command = names.join(" ");
    let refusal = format!("`chorusctl {command}` does not use a conversation; remove -C {conversation}\n");
    Err(clap::Error::raw(ErrorKind::ArgumentConflict, refusal))
}

/// Returns the conversation to name in a request.
#[must_use]
pub fn selected_conversation(app: &App) -> Option<String> {
    named_conversation(app).or_else(|| Some(SELECTED.to_owned()))
}

/// Returns the conversation that the user named with --conversation or $CHORUS_CONVERSATION.
#[must_use]
pub fn named_conversation(app: &App) -> Option<String> {
    app.global.conversation.clone().or_else(|| from_environment().filter(|_| has_own_variables(app)))
}

fn from_environment() -> Option<String> {
    std::env::var("CHORUS_CONVERSATION").ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::COMMANDS_WITHOUT_CONVERSATION;

    #[test]
    fn the_commands_without_a_conversation_exist() {
        let tree = crate::cli::command_tree();
        for path in COMMANDS_WITHOUT_CONVERSATION {
            let found = path.split(' ').try_fold(&tree, |command, name| command.find_subcommand(name));
            assert!(found.is_some(), "{path}");
        }
    }
}
