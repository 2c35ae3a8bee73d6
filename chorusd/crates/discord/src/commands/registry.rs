//! The list of all slash commands.

use serenity::model::Permissions;

use super::definitions::{Command, CommandId, CommandOption, Completion, OptionKind, Right, Subcommand, Subcommands};

/// Keys that `/agent config` sets. Keys that open one agent to another, or that show secrets, are set at the terminal.
pub(super) const AGENT_CONFIG_KEYS: &[&str] = &[
    "channel_id",
    "checkpoint_workspace",
    "compact_at_tokens",
    "daily_cost_limit",
    "daily_token_limit",
    "idle_timeout",
    "model",
    "name",
    "permissions",
    "system_prompt",
    "window_messages",
];

const fn required(name: &'static str, description: &'static str, kind: OptionKind) -> CommandOption {
    CommandOption { name, description, kind, required: true }
}

const fn optional(name: &'static str, description: &'static str, kind: OptionKind) -> CommandOption {
    CommandOption { name, description, kind, required: false }
}

const AGENT_OPTION: CommandOption =
    optional("agent", "Another agent than this channel's", OptionKind::Autocomplete(Completion::Agents));
const NAME_OPTION: CommandOption = required("name", "Which agent", OptionKind::Autocomplete(Completion::Agents));
const SESSION_OPTION: CommandOption = required(
    "session",
    "Which one: its name, short id, number, or `latest`",
    OptionKind::Autocomplete(Completion::Sessions),
);
const TASK_OPTION: CommandOption = required("id", "Which task, for example t12", OptionKind::Text(32));
const RESET_OPTION: CommandOption = optional("reset", "Take back what was set here", OptionKind::Bool);

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "agent",
        description: "Make, change and take away agents",
        default_permissions: None,
        subcommands: Subcommands::Many(&[
            Subcommand {
                name: "init",
                description: "Make an agent with a channel of its own",
                command: CommandId::AgentInit,
                right: Right::Channels,
                private: false,
                options: &[
                    required("name", "Small letters, digits, - and _", OptionKind::Text(64)),
                    optional("system_prompt", "What it is told to be", OptionKind::Text(6000)),
                    optional("model", "provider/model", OptionKind::Autocomplete(Completion::Models)),
                    optional(
                        "permissions",
                        "What it may do: a profile",
                        OptionKind::Autocomplete(Completion::Profiles),
                    ),
                    optional(
                        "idle_timeout",
                        "When a silent conversation is put away: 30m, 2h, 0 for never",
                        OptionKind::Text(32),
                    ),
                ],
            },
            Subcommand {
                name: "destroy",
                description: "Save its conversation and take an agent away",
                command: CommandId::AgentDestroy,
                right: Right::Channels,
                private: true,
                options: &[NAME_OPTION, optional("keep_files", "Leave its directory in place", OptionKind::Bool)],
            },
            Subcommand {
                name: "list",
                description: "The agents there are",
                command: CommandId::AgentList,
                right: Right::Read,
                private: true,
                options: &[],
            },
            Subcommand {
                name: "config",
                description: "Show or set what an agent is",
                command: CommandId::AgentConfig,
                right: Right::Channels,
                private: true,
                options: &[
                    NAME_OPTION,
                    optional("key", "What to show or set", OptionKind::OneOf(AGENT_CONFIG_KEYS)),
                    optional("value", "What it shall be", OptionKind::Autocomplete(Completion::Values)),
                    RESET_OPTION,
                ],
            },
        ]),
    },
    Command {
        name: "context",
        description: "The conversation of this channel's agent",
        default_permissions: None,
        subcommands: Subcommands::Many(&[
            Subcommand {
                name: "save",
                description: "Save the conversation; it goes on",
                command: CommandId::ContextSave,
                right: Right::Change,
                private: false,
                options: &[optional("description", "What it is about", OptionKind::Text(1000)), AGENT_OPTION],
            },
            Subcommand {
                name: "clear",
                description: "Discard the conversation",
                command: CommandId::ContextClear,
                right: Right::Change,
                private: true,
                options: &[optional("save", "Save it first", OptionKind::Bool), AGENT_OPTION],
            },
            Subcommand {
                name: "history",
                description: "Saved conversations, newest first",
                command: CommandId::ContextHistory,
                right: Right::Read,
                private: true,
                options: &[optional("page", "Counted from 1", OptionKind::Number(1)), AGENT_OPTION],
            },
            Subcommand {
                name: "restore",
                description: "Go on with all messages of a saved conversation",
                command: CommandId::ContextRestore,
                right: Right::Change,
                private: false,
                options: &[
                    SESSION_OPTION,
                    optional("at", "Only its first messages", OptionKind::Number(1)),
                    optional("discard", "Do not save what is live now", OptionKind::Bool),
                    AGENT_OPTION,
                ],
            },
            Subcommand {
                name: "resume",
                description: "Begin anew from the summary of a saved conversation",
                command: CommandId::ContextResume,
                right: Right::Change,
                private: false,
                options: &[SESSION_OPTION, AGENT_OPTION],
            },
            Subcommand {
                name: "compact",
                description: "Save the conversation and go on from its summary",
                command: CommandId::ContextCompact,
                right: Right::Change,
                private: false,
                options: &[optional("undo", "Take the last automatic one back", OptionKind::Bool), AGENT_OPTION],
            },
            Subcommand {
                name: "rewind",
                description: "Drop the last turns of the conversation",
                command: CommandId::ContextRewind,
                right: Right::Change,
                private: false,
                options: &[
                    optional("turns", "How many; one unless given", OptionKind::Number(1)),
                    optional("undo", "Bring back what the last rewind dropped", OptionKind::Bool),
                    AGENT_OPTION,
                ],
            },
        ]),
    },
    Command {
        name: "settings",
        description: "What all agents have that say nothing themselves",
        default_permissions: Some(Permissions::MANAGE_GUILD),
        subcommands: Subcommands::Many(&[
            Subcommand {
                name: "model",
                description: "Show or set the model",
                command: CommandId::SettingsModel,
                right: Right::Server,
                private: true,
                options: &[
                    optional("model", "provider/model", OptionKind::Autocomplete(Completion::Models)),
                    RESET_OPTION,
                ],
            },
            Subcommand {
                name: "permissions",
                description: "Show or set the permission profile",
                command: CommandId::SettingsPermissions,
                right: Right::Server,
                private: true,
                options: &[
                    optional("profile", "Its name", OptionKind::Autocomplete(Completion::Profiles)),
                    RESET_OPTION,
                ],
            },
            Subcommand {
                name: "idle",
                description: "Show or set when a silent conversation is put away",
                command: CommandId::SettingsIdle,
                right: Right::Server,
                private: true,
                options: &[optional("timeout", "30m, 2h; 0 for never", OptionKind::Text(32)), RESET_OPTION],
            },
            Subcommand {
                name: "show",
                description: "The settings in force",
                command: CommandId::SettingsShow,
                right: Right::Server,
                private: true,
                options: &[],
            },
            Subcommand {
                name: "validate-keys",
                description: "Ask every provider whether it takes its key",
                command: CommandId::SettingsValidateKeys,
                right: Right::Server,
                private: true,
                options: &[],
            },
        ]),
    },
    Command {
        name: "tasks",
        description: "Commands that the agent runs in the background",
        default_permissions: None,
        subcommands: Subcommands::Many(&[
            Subcommand {
                name: "list",
                description: "Those that run, then the others",
                command: CommandId::TasksList,
                right: Right::Read,
                private: true,
                options: &[AGENT_OPTION],
            },
            Subcommand {
                name: "show",
                description: "One of them",
                command: CommandId::TasksShow,
                right: Right::Read,
                private: true,
                options: &[TASK_OPTION],
            },
            Subcommand {
                name: "stop",
                description: "End one of them",
                command: CommandId::TasksStop,
                right: Right::Change,
                private: false,
                options: &[TASK_OPTION],
            },
        ]),
    },
    read_only_command("status", "How the daemon and the agent are", CommandId::Status, &[AGENT_OPTION]),
    read_only_command("models", "The models there are", CommandId::Models, &[]),
    read_only_command("approvals", "What waits for an answer", CommandId::Approvals, &[AGENT_OPTION]),
    read_only_command(
        "usage",
        "Tokens and cost of the agent",
        CommandId::Usage,
        &[optional("since", "7d, 12h, or a date such as 2026-02-12", OptionKind::Text(32)), AGENT_OPTION],
    ),
    read_only_command("ping", "Whether Chorus is there", CommandId::Ping, &[]),
];

/// Defines a command without subcommands that only reads.
const fn read_only_command(
    name: &'static str,
    description: &'static str,
    verb: CommandId,
    options: &'static [CommandOption],
) -> Command {
    let action = Subcommand { name, description, command: verb, right: Right::Read, private: true, options };
    Command { name, description, default_permissions: None, subcommands: Subcommands::One(action) }
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
    fn every_action_is_found_by_its_words_and_does_its_own() {
        let mut verbs = HashSet::new();
        for command in COMMANDS {
            let alone = matches!(command.subcommands, Subcommands::One(_));
            for action in command.all_subcommands() {
                let sub = (!alone).then_some(action.name);
                assert_eq!(find_subcommand(command.name, sub).map(|action| action.command), Some(action.command));
                assert!(verbs.insert(action.command), "{:?} twice", action.command);
            }
        }
        for (command, sub) in [("agent", None), ("agent", Some("x")), ("ping", Some("ping")), ("search", None)] {
            assert!(find_subcommand(command, sub).is_none());
        }
    }

    #[test]
    fn commands_are_for_servers_and_settings_for_who_manages_them() {
        let bodies: Vec<Value> = COMMANDS.iter().map(Command::to_json).collect();
        assert!(bodies.iter().all(|body| body["contexts"] == serde_json::json!([0])));
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
                    Right::Channels => "Manage Channels",
                    Right::Server => "Manage Server",
                };
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                assert_eq!((cells[3], cells[4].starts_with("who asks")), (right, action.private), "{words}");
            }
        }
    }
}
