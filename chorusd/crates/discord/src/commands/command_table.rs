//! The table of all slash commands. A command is defined beside the functions that run it.

use super::command_definition::{Command, Subcommand, Subcommands};
use super::{
    agent, cancel, context, conversation, file, help, memory, permissions, schedule, session, settings, shortcuts,
    status_commands, tasks,
};

pub(super) static COMMANDS: &[Command] = &[
    help::COMMAND,
    cancel::COMMAND,
    shortcuts::UNDO,
    shortcuts::PIN,
    shortcuts::UNPIN,
    agent::COMMAND,
    context::COMMAND,
    conversation::COMMAND,
    session::COMMAND,
    memory::COMMAND,
    file::COMMAND,
    permissions::COMMAND,
    settings::COMMAND,
    schedule::COMMAND,
    tasks::COMMAND,
    status_commands::STATUS,
    status_commands::MODELS,
    status_commands::APPROVALS,
    status_commands::USAGE,
    status_commands::PING,
];

/// Commands that are available in direct messages: those about the conversation, and those that show a state.
const DIRECT_COMMANDS: [&str; 10] =
    ["help", "cancel", "undo", "pin", "unpin", "context", "session", "status", "approvals", "ping"];

/// Returns whether a command is available in direct messages.
pub(super) fn is_direct(command: &str) -> bool {
    DIRECT_COMMANDS.contains(&command)
}

/// Finds a subcommand by the words of its command.
pub(super) fn find_subcommand(command: &str, sub: Option<&str>) -> Option<&'static Subcommand> {
    let command = COMMANDS.iter().find(|known| known.name == command)?;
    match (&command.subcommands, sub) {
        (Subcommands::One(action), None) => Some(action),
        (Subcommands::Many(actions), Some(sub)) => actions.iter().find(|action| action.name == sub),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::super::command_definition::{CommandContext, OptionKind, Right};
    use super::*;

    /// Returns whether Discord accepts `name` as a name.
    fn is_name(name: &str) -> bool {
        (1..=32).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
    }

    fn check(name: &str, description: &str) {
        assert!(is_name(name), "{name}");
        assert!((1..=100).contains(&description.chars().count()), "{name}: {description}");
    }

    #[test]
    fn every_definition_is_within_discords_limits() {
        assert!(COMMANDS.len() <= 100);
        for command in COMMANDS {
            check(command.name, command.description);
            assert!(command.all_subcommands().len() <= 25);
            let mut characters = command.name.len() + command.description.len();
            for action in command.all_subcommands() {
                check(action.name, action.description);
                assert!(action.options.len() <= 25);
                let names: HashSet<&str> = action.options.iter().map(|option| option.name).collect();
                assert_eq!(names.len(), action.options.len(), "{} has an option twice", action.name);
                // Required options come before optional ones.
                assert!(action.options.is_sorted_by_key(|option| !option.required), "{}", action.name);
                characters += action.name.len() + action.description.len();
                for option in action.options {
                    check(option.name, option.description);
                    characters += option.name.len() + option.description.len();
                    match option.kind {
                        OptionKind::OneOf(words) => {
                            assert!((1..=25).contains(&words.len()));
                            assert!(words.iter().all(|word| (1..=100).contains(&word.len())));
                            characters += words.iter().map(|word| 2 * word.len()).sum::<usize>();
                        }
                        OptionKind::Text(most) => assert!((1..=6000).contains(&most), "{}", option.name),
                        OptionKind::Autocomplete(_) | OptionKind::Number(_) | OptionKind::Bool => {}
                    }
                }
            }
            assert!(characters <= 8000, "{} is too long", command.name);
        }
    }

    #[test]
    fn every_action_is_found_by_its_words() {
        for command in COMMANDS {
            let alone = matches!(command.subcommands, Subcommands::One(_));
            for action in command.all_subcommands() {
                let sub = (!alone).then_some(action.name);
                let found = find_subcommand(command.name, sub).expect("the action");
                assert!(std::ptr::eq(found, action), "{} {sub:?} twice", command.name);
            }
        }
        for (command, sub) in [("agent", None), ("agent", Some("x")), ("ping", Some("ping")), ("search", None)] {
            assert!(find_subcommand(command, sub).is_none());
        }
    }

    #[test]
    fn commands_are_for_servers_and_settings_for_who_manages_them() {
        let bodies: Vec<Value> = COMMANDS.iter().map(|command| command.to_json(CommandContext::Guild)).collect();
        assert!(bodies.iter().all(|body| body["contexts"] == serde_json::json!([0])));
        let all_exist = DIRECT_COMMANDS.iter().all(|name| COMMANDS.iter().any(|command| command.name == *name));
        assert!(all_exist && !is_direct("settings") && !is_direct("memory"));
        let settings = bodies.iter().find(|body| body["name"] == "settings").unwrap();
        assert_eq!(settings["default_member_permissions"], "32");
        let save = bodies.iter().find(|body| body["name"] == "context").unwrap();
        assert_eq!(save["options"][0]["options"][0]["max_length"], 1000);
    }

    #[test]
    fn the_page_has_every_command_with_its_options_and_right() {
        let page = include_str!("../../../../../docs/DISCORD.md");
        for command in COMMANDS {
            let alone = matches!(command.subcommands, Subcommands::One(_));
            for action in command.all_subcommands() {
                let mut words = format!("/{}", command.name);
                if !alone {
                    words.push_str(&format!(" {}", action.name));
                }
                for option in action.options {
                    words.push_str(&if option.required {
                        format!(" {}", option.name)
                    } else {
                        format!(" [{}]", option.name)
                    });
                }
                let row = page.lines().find(|line| line.starts_with(&format!("| `{words}` |")));
                let row = row.unwrap_or_else(|| panic!("docs/DISCORD.md has no row for `{words}`"));
                let right = match action.right {
                    Right::Read => "everybody",
                    Right::Change => "change",
                    Right::Threads => "Create Public Threads",
                    Right::Channels => "Manage Channels",
                    Right::Server => "Manage Server",
                };
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                assert_eq!((cells[3], cells[4].starts_with("who asks")), (right, action.private), "{words}");
            }
        }
    }
}
