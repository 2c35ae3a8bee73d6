//! Names the commands in texts as they are typed where the text is read: with the agent and the conversation of the
//! command that was run, and in a chat as slash commands.

use chorus_proto::command_text::{NamedCommand, PROGRAM, add_target};

use crate::conversation_select::MAIN;

/// The agent and conversation that the commands in texts concern. It lives as long as the program.
#[derive(Debug, Default)]
pub struct CommandText {
    /// The agent that was named on the command line.
    pub agent: Option<String>,
    /// The conversation that was named on the command line, or that of the chat.
    pub conversation: Option<String>,
    /// The chat in which the text is read.
    pub chat: Option<ChatCommands>,
}

/// The commands of a chat.
#[derive(Debug)]
pub struct ChatCommands {
    pub agent: String,
    /// Returns a text that starts with the name of a command with that of the slash command instead; `None` if there is
    /// none.
    pub slash_name: fn(&str) -> Option<String>,
}

impl CommandText {
    /// Names the commands in `text`.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        let mut parts = text.split(PROGRAM);
        let mut named = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            match self.slash_name(&NamedCommand::parse(part)) {
                Some(slash) => named.push_str(&slash),
                None => named.push_str(&add_target(
                    &format!("{PROGRAM}{part}"),
                    self.agent.as_deref(),
                    self.conversation.as_deref(),
                )),
            }
        }
        named
    }

    /// Returns the command as it is typed in the chat; `None` if it concerns something else, or none is there.
    fn slash_name(&self, command: &NamedCommand<'_>) -> Option<String> {
        let chat = self.chat.as_ref()?;
        let here = self.conversation.as_deref().unwrap_or(MAIN);
        let is_here = command.agent.is_none_or(|agent| agent == chat.agent)
            && command.conversation.is_none_or(|name| name == here);
        is_here.then(|| (chat.slash_name)(command.rest)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_names_its_own_commands_and_the_target_of_others() {
        let slash_name = |text: &str| text.strip_prefix("undo").map(|rest| format!("/undo{rest}"));
        let text = CommandText {
            agent: None,
            conversation: Some("review".into()),
            chat: Some(ChatCommands { agent: "api".into(), slash_name }),
        };
        for (given, expected) in [
            ("redo: chorusctl undo --redo", "redo: /undo --redo"),
            ("`chorusctl --agent api -C review undo`", "`/undo`"),
            ("chorusctl -C docs undo, chorusctl show", "chorusctl -C docs undo, chorusctl -C review show"),
            ("chorusctl daemon logs", "chorusctl daemon logs"),
        ] {
            assert_eq!(text.apply(given), expected);
        }
    }
}
