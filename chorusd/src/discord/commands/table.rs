//! All commands there are.

use serenity::model::Permissions;

use super::definitions::{Action, Actions, Command, Kind, Offer, Opt, Right, Verb};

/// What `/agent config` sets. What opens one agent to another, or shows secrets, is set at the terminal.
pub const KEYS: &[&str] = &[
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

const fn must(name: &'static str, description: &'static str, kind: Kind) -> Opt {
    Opt { name, description, kind, required: true }
}

const fn may(name: &'static str, description: &'static str, kind: Kind) -> Opt {
    Opt { name, description, kind, required: false }
}

const AGENT: Opt = may("agent", "Another agent than this channel's", Kind::Offered(Offer::Agents));
const NAME: Opt = must("name", "Which agent", Kind::Offered(Offer::Agents));
const SESSION: Opt =
    must("session", "Which one: its name, short id, number, or `latest`", Kind::Offered(Offer::Sessions));
const TASK: Opt = must("id", "Which task, for example t12", Kind::Text(32));
const RESET: Opt = may("reset", "Take back what was set here", Kind::YesNo);

pub const COMMANDS: &[Command] = &[
    Command {
        name: "agent",
        description: "Make, change and take away agents",
        hidden: None,
        actions: Actions::Many(&[
            Action {
                name: "init",
                description: "Make an agent with a channel of its own",
                verb: Verb::AgentInit,
                right: Right::Channels,
                private: false,
                options: &[
                    must("name", "Small letters, digits, - and _", Kind::Text(64)),
                    may("system_prompt", "What it is told to be", Kind::Text(6000)),
                    may("model", "provider/model", Kind::Offered(Offer::Models)),
                    may("permissions", "What it may do: a profile", Kind::Offered(Offer::Profiles)),
                    may("idle_timeout", "When a silent conversation is put away: 30m, 2h, 0 for never", Kind::Text(32)),
                ],
            },
            Action {
                name: "destroy",
                description: "Save its conversation and take an agent away",
                verb: Verb::AgentDestroy,
                right: Right::Channels,
                private: true,
                options: &[NAME, may("keep_files", "Leave its directory in place", Kind::YesNo)],
            },
            Action {
                name: "list",
                description: "The agents there are",
                verb: Verb::AgentList,
                right: Right::Read,
                private: true,
                options: &[],
            },
            Action {
                name: "config",
                description: "Show or set what an agent is",
                verb: Verb::AgentConfig,
                right: Right::Channels,
                private: true,
                options: &[
                    NAME,
                    may("key", "What to show or set", Kind::OneOf(KEYS)),
                    may("value", "What it shall be", Kind::Offered(Offer::Values)),
                    RESET,
                ],
            },
        ]),
    },
    Command {
        name: "context",
        description: "The conversation of this channel's agent",
        hidden: None,
        actions: Actions::Many(&[
            Action {
                name: "save",
                description: "Save the conversation; it goes on",
                verb: Verb::ContextSave,
                right: Right::Change,
                private: false,
                options: &[may("description", "What it is about", Kind::Text(1000)), AGENT],
            },
            Action {
                name: "clear",
                description: "Discard the conversation",
                verb: Verb::ContextClear,
                right: Right::Change,
                private: true,
                options: &[may("save", "Save it first", Kind::YesNo), AGENT],
            },
            Action {
                name: "history",
                description: "Saved conversations, newest first",
                verb: Verb::ContextHistory,
                right: Right::Read,
                private: true,
                options: &[may("page", "Counted from 1", Kind::Number(1)), AGENT],
            },
            Action {
                name: "restore",
                description: "Go on with all messages of a saved conversation",
                verb: Verb::ContextRestore,
                right: Right::Change,
                private: false,
                options: &[
                    SESSION,
                    may("at", "Only its first messages", Kind::Number(1)),
                    may("discard", "Do not save what is live now", Kind::YesNo),
                    AGENT,
                ],
            },
            Action {
                name: "resume",
                description: "Begin anew from the summary of a saved conversation",
                verb: Verb::ContextResume,
                right: Right::Change,
                private: false,
                options: &[SESSION, AGENT],
            },
            Action {
                name: "compact",
                description: "Save the conversation and go on from its summary",
                verb: Verb::ContextCompact,
                right: Right::Change,
                private: false,
                options: &[may("undo", "Take the last automatic one back", Kind::YesNo), AGENT],
            },
            Action {
                name: "rewind",
                description: "Drop the last turns of the conversation",
                verb: Verb::ContextRewind,
                right: Right::Change,
                private: false,
                options: &[
                    may("turns", "How many; one unless given", Kind::Number(1)),
                    may("undo", "Bring back what the last rewind dropped", Kind::YesNo),
                    AGENT,
                ],
            },
        ]),
    },
    Command {
        name: "settings",
        description: "What all agents have that say nothing themselves",
        hidden: Some(Permissions::MANAGE_GUILD),
        actions: Actions::Many(&[
            Action {
                name: "model",
                description: "Show or set the model",
                verb: Verb::SettingsModel,
                right: Right::Server,
                private: true,
                options: &[may("model", "provider/model", Kind::Offered(Offer::Models)), RESET],
            },
            Action {
                name: "permissions",
                description: "Show or set the permission profile",
                verb: Verb::SettingsPermissions,
                right: Right::Server,
                private: true,
                options: &[may("profile", "Its name", Kind::Offered(Offer::Profiles)), RESET],
            },
            Action {
                name: "idle",
                description: "Show or set when a silent conversation is put away",
                verb: Verb::SettingsIdle,
                right: Right::Server,
                private: true,
                options: &[may("timeout", "30m, 2h; 0 for never", Kind::Text(32)), RESET],
            },
            Action {
                name: "show",
                description: "The settings in force",
                verb: Verb::SettingsShow,
                right: Right::Server,
                private: true,
                options: &[],
            },
            Action {
                name: "validate-keys",
                description: "Ask every provider whether it takes its key",
                verb: Verb::SettingsValidateKeys,
                right: Right::Server,
                private: true,
                options: &[],
            },
        ]),
    },
    Command {
        name: "tasks",
        description: "Commands that the agent runs in the background",
        hidden: None,
        actions: Actions::Many(&[
            Action {
                name: "list",
                description: "Those that run, then the others",
                verb: Verb::TasksList,
                right: Right::Read,
                private: true,
                options: &[AGENT],
            },
            Action {
                name: "show",
                description: "One of them",
                verb: Verb::TasksShow,
                right: Right::Read,
                private: true,
                options: &[TASK],
            },
            Action {
                name: "stop",
                description: "End one of them",
                verb: Verb::TasksStop,
                right: Right::Change,
                private: false,
                options: &[TASK],
            },
        ]),
    },
    one("status", "How the daemon and the agent are", Verb::Status, &[AGENT]),
    one("models", "The models there are", Verb::Models, &[]),
    one("approvals", "What waits for an answer", Verb::Approvals, &[AGENT]),
    one(
        "usage",
        "Tokens and cost of the agent",
        Verb::Usage,
        &[may("since", "7d, 12h, or a date such as 2026-02-12", Kind::Text(32)), AGENT],
    ),
    one("ping", "Whether Chorus is there", Verb::Ping, &[]),
];

/// A command that only reads.
const fn one(name: &'static str, description: &'static str, verb: Verb, options: &'static [Opt]) -> Command {
    let action = Action { name, description, verb, right: Right::Read, private: true, options };
    Command { name, description, hidden: None, actions: Actions::One(action) }
}

/// The action of these words.
pub fn find(command: &str, sub: Option<&str>) -> Option<&'static Action> {
    let command = COMMANDS.iter().find(|known| known.name == command)?;
    match (&command.actions, sub) {
        (Actions::One(action), None) => Some(action),
        (Actions::Many(actions), Some(sub)) => actions.iter().find(|action| action.name == sub),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;

    /// What Discord takes for a name.
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
            assert!(command.actions().len() <= 25);
            let mut characters = command.name.len() + command.description.len();
            for action in command.actions() {
                check(action.name, action.description);
                assert!(action.options.len() <= 25);
                let names: HashSet<&str> = action.options.iter().map(|option| option.name).collect();
                assert_eq!(names.len(), action.options.len(), "{} has an option twice", action.name);
                // Those that must be given stand before the others.
                assert!(action.options.is_sorted_by_key(|option| !option.required), "{}", action.name);
                characters += action.name.len() + action.description.len();
                for option in action.options {
                    check(option.name, option.description);
                    characters += option.name.len() + option.description.len();
                    match option.kind {
                        Kind::OneOf(words) => {
                            assert!((1..=25).contains(&words.len()));
                            assert!(words.iter().all(|word| (1..=100).contains(&word.len())));
                            characters += words.iter().map(|word| 2 * word.len()).sum::<usize>();
                        }
                        Kind::Text(most) => assert!((1..=6000).contains(&most), "{}", option.name),
                        Kind::Offered(_) | Kind::Number(_) | Kind::YesNo => {}
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
            let alone = matches!(command.actions, Actions::One(_));
            for action in command.actions() {
                let sub = (!alone).then_some(action.name);
                assert_eq!(find(command.name, sub).map(|action| action.verb), Some(action.verb));
                assert!(verbs.insert(action.verb), "{:?} twice", action.verb);
            }
        }
        for (command, sub) in [("agent", None), ("agent", Some("x")), ("ping", Some("ping")), ("search", None)] {
            assert!(find(command, sub).is_none());
        }
    }

    #[test]
    fn commands_are_for_servers_and_settings_for_who_manages_them() {
        let bodies: Vec<Value> = COMMANDS.iter().map(Command::body).collect();
        assert!(bodies.iter().all(|body| body["contexts"] == serde_json::json!([0])));
        let settings = bodies.iter().find(|body| body["name"] == "settings").unwrap();
        assert_eq!(settings["default_member_permissions"], "32");
        let save = bodies.iter().find(|body| body["name"] == "context").unwrap();
        assert_eq!(save["options"][0]["options"][0]["max_length"], 1000);
    }

    #[test]
    fn the_page_has_every_command_with_its_options_and_right() {
        let page = include_str!("../../../../docs/DISCORD.md");
        for command in COMMANDS {
            let alone = matches!(command.actions, Actions::One(_));
            for action in command.actions() {
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
