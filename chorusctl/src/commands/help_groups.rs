//! The groups in which `chorusctl --help` lists the commands.

use clap::Command;
use clap::builder::StyledStr;

/// The groups, each with the names of its commands. Every visible command is in exactly one.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Everyday",
        &[
            "save",
            "history",
            "search",
            "show",
            "restore",
            "resume",
            "resume-in",
            "undo",
            "send",
            "chat",
            "status",
            "top",
            "web",
        ],
    ),
    (
        "Conversations",
        &["capture", "import", "export", "sync", "rm", "context", "conversations", "session", "notes", "trash"],
    ),
    ("Agents", &["agent", "memory", "models", "schedule", "tasks", "cancel", "mcp", "hooks", "usage"]),
    ("Oversight", &["approvals", "permissions", "audit", "events"]),
    ("System", &["daemon", "config", "doctor", "backup", "cluster", "store", "tour", "completions", "man", "help"]),
];

/// Width of the column with the names.
const NAME_WIDTH: usize = 15;

/// Makes the help of `command` list its subcommands in groups.
#[must_use]
pub fn group_subcommands(command: Command) -> Command {
    let template = help_template(&command);
    command.help_template(template)
}

fn help_template(command: &Command) -> StyledStr {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        text.push_str(&format!("\n{header}{group}:{header:#}\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_default();
            text.push_str(&format!("  {literal}{name:<NAME_WIDTH$}{literal:#}{about}\n"));
        }
    }
    text.push_str(&format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}"));
    StyledStr::from(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli;

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let tree = cli::command_tree();
        let visible: BTreeSet<&str> =
            tree.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), visible);
        assert_eq!(grouped.len(), visible.len(), "a command is in two groups");
    }
}
