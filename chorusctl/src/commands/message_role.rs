//! The roles of messages on the command line.

use chorus_proto::Role;
use clap::ValueEnum;

/// Role of a message, by its name on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MessageRole {
    #[default]
    User,
    Assistant,
    System,
    ToolResult,
}

impl From<MessageRole> for Role {
    fn from(role: MessageRole) -> Self {
        match role {
            MessageRole::User => Self::User,
            MessageRole::Assistant => Self::Assistant,
            MessageRole::System => Self::System,
            MessageRole::ToolResult => Self::ToolResult,
        }
    }
}
