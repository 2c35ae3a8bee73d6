//! Names the agent and the conversation in the commands of hints, so that whoever runs a command acts on the conversation
//! that the hint is about.

/// How a command begins in a text.
pub const PROGRAM: &str = "chorusctl ";

/// The commands that act on a conversation, or find a session by it.
const CONVERSATION_COMMANDS: [&str; 24] = [
    "cancel",
    "chat",
    "context append",
    "context clear",
    "context compact",
    "context pin",
    "context restore",
    "context resume",
    "context rewind",
    "context save",
    "context show",
    "context unpin",
    "conversations close",
    "conversations merge",
    "export",
    "notes",
    "restore",
    "resume",
    "save",
    "send",
    "session branch",
    "session merge",
    "show",
    "undo",
];

/// A command in a text: the options before its name, and the text from there on.
#[derive(Debug, Clone, Copy)]
pub struct NamedCommand<'a> {
    pub agent: Option<&'a str>,
    pub conversation: Option<&'a str>,
    /// Starts with the name of the command.
    pub rest: &'a str,
}

impl<'a> NamedCommand<'a> {
    /// Parses the text behind [`PROGRAM`].
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let mut command = Self { agent: None, conversation: None, rest: text };
        while let Some((option, after)) = command.rest.split_once(' ') {
            let Some((value, rest)) = after.split_once(' ') else { break };
            match option {
                "--agent" => command.agent = Some(value),
                "-C" | "--conversation" => command.conversation = Some(value),
                _ => break,
            }
            command.rest = rest;
        }
        command
    }

    /// Returns true if the command acts on a conversation.
    #[must_use]
    pub fn takes_conversation(&self) -> bool {
        let is_named = |name: &&str| {
            let rest = self.rest.strip_prefix(*name);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_')))
        };
        CONVERSATION_COMMANDS.iter().any(is_named)
    }
}

/// Adds `-C CONVERSATION` to the commands in `text` that act on a conversation and name none. `--agent AGENT` is added to
/// these and to those that name a conversation but no agent.
#[must_use]
pub fn add_target(text: &str, agent: Option<&str>, conversation: Option<&str>) -> String {
    let (agent, conversation) = (agent.filter(|name| is_name(name)), conversation.filter(|name| is_name(name)));
    let mut parts = text.split(PROGRAM);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str(PROGRAM);
        let command = NamedCommand::parse(part);
        if !command.takes_conversation() || command.conversation.or(conversation).is_none() {
            result.push_str(part);
            continue;
        }
        for (option, value) in [("--agent", command.agent.or(agent)), ("-C", command.conversation.or(conversation))] {
            if let Some(value) = value {
                result.push_str(&format!("{option} {value} "));
            }
        }
        result.push_str(command.rest);
    }
    result
}

/// Returns true if `name` can be the name of an agent or a conversation.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let valid = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(valid) && name.len() <= 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_conversations_name_it() {
        for (text, expected) in [
            ("redo: chorusctl undo --redo", "redo: chorusctl -C docs undo --redo"),
            (
                "chorusctl chat, or chorusctl restore latest",
                "chorusctl -C docs chat, or chorusctl -C docs restore latest",
            ),
            ("run `chorusctl context clear`", "run `chorusctl -C docs context clear`"),
            ("chorusctl -C a restore x; chorusctl cancel", "chorusctl -C a restore x; chorusctl -C docs cancel"),
            ("chorusctl --agent a restore x", "chorusctl --agent a -C docs restore x"),
            ("chorusctl -C b conversations merge", "chorusctl -C b conversations merge"),
            ("chorusctl history, chorusctl shower", "chorusctl history, chorusctl shower"),
            ("chorusctl trash restore x", "chorusctl trash restore x"),
            ("chorusctl agent show", "chorusctl agent show"),
            ("nothing to do", "nothing to do"),
        ] {
            assert_eq!(add_target(text, None, Some("docs")), expected);
        }
        let with_agent = |text| add_target(text, Some("web"), Some("docs"));
        assert_eq!(with_agent("chorusctl undo"), "chorusctl --agent web -C docs undo");
        assert_eq!(with_agent("chorusctl --agent api undo"), "chorusctl --agent api -C docs undo");
        assert_eq!(with_agent("chorusctl -C api undo"), "chorusctl --agent web -C api undo");
        let (plain, named) =
            ("chorusctl -C api conversations close", "chorusctl --agent web -C api conversations close");
        assert_eq!((with_agent(plain), add_target(plain, Some("web"), None)), (named.into(), named.into()));
        assert_eq!(add_target("chorusctl undo", Some("web"), None), "chorusctl undo");
        assert_eq!(add_target("chorusctl undo", None, Some("not a name")), "chorusctl undo");
    }
}
