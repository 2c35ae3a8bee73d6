//! Names the commands in texts as they are typed where the text is read: with the agent and the conversation of the
//! command that was run, and in a chat as slash commands.

use std::sync::Arc;

use chorus_proto::command_text::{NamedCommand, PROGRAM, add_target};
use chorus_proto::shell_word::shell_word;
use chorus_remote::Host;

use crate::conversation_select::MAIN;

/// The commands that concern the installation of the machine they run on.
const OF_INSTALLATION: [&str; 12] = [
    "backup ",
    "cluster cert",
    "daemon ",
    "doctor --",
    "hooks",
    "mcp",
    "models add",
    "search model --from",
    "store ",
    "sync",
    "tour",
    "web",
];

/// Returns true if the command after `chorusctl ` is one of the installation.
fn is_of_installation(rest: &str) -> bool {
    let after_socket = rest.strip_prefix("--socket ").and_then(|rest| Some(rest.split_once(' ')?.1));
    OF_INSTALLATION.iter().any(|name| after_socket.unwrap_or(rest).starts_with(name))
}

/// Returns true if commands without `--host` are for another machine, too.
fn host_variable_is_set() -> bool {
    std::env::var_os("CHORUS_HOST").is_some_and(|host| !host.is_empty())
}

/// The agent and conversation that the commands in texts concern. It lives as long as the program.
#[derive(Debug, Default)]
pub struct CommandText {
    /// The agent that was named on the command line.
    pub agent: Option<String>,
    /// The conversation that was named on the command line, or that of the chat.
    pub conversation: Option<String>,
    /// The chat in which the text is read.
    pub chat: Option<ChatCommands>,
    /// The machine whose daemon is used, if it is another one.
    pub host: Option<Arc<Host>>,
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
            // A chat has no slash command for what is typed on another machine.
            let slash = self
                .slash_name(&NamedCommand::parse(part))
                .filter(|_| self.host.is_none() || !is_of_installation(part));
            match slash {
                Some(slash) => named.push_str(&slash),
                None => {
                    let command = format!("{PROGRAM}{part}");
                    let command = add_target(&command, self.agent.as_deref(), self.conversation.as_deref());
                    named.push_str(&self.add_host(command));
                }
            }
        }
        named
    }

    /// Adds the other machine to a command: for the installation there, it is typed there.
    fn add_host(&self, command: String) -> String {
        let Some((host, rest)) = self.host.as_ref().zip(command.strip_prefix(PROGRAM)) else { return command };
        if is_of_installation(rest) {
            return host.shell_line(rest);
        }
        match host_variable_is_set() {
            true => command,
            false => format!("{PROGRAM}--host {} {rest}", shell_word(&host.name)),
        }
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
            host: None,
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
