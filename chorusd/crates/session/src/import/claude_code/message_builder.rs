//! Adds transcript lines to messages: several lines form one reply, and a user's line is split into tool results and
//! text.

use chorus_proto::Role;

use super::super::anthropic_blocks::content::ToolOutput;
use super::super::anthropic_blocks::message_builder::MessageBuilder;
use super::line::{Speaker, TranscriptMessage};

/// Adds one line. Returns its tool results, which become messages of their own.
pub(super) fn add_line<'a>(draft: &mut MessageBuilder, talk: TranscriptMessage<'a>) -> Vec<ToolOutput<'a>> {
    draft.set_usage(talk.cost);
    draft.add_content(talk.content)
}

/// Returns the role of a speaker's text.
pub(super) fn speaker_role(speaker: Speaker) -> Role {
    match speaker {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
        Speaker::System => Role::System,
    }
}
