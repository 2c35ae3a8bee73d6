//! Lines become messages: a reply is gathered from its lines, an answer falls apart into results and words.

use chorus_proto::Role;

use super::super::anthropic::content::ToolOutput;
use super::super::anthropic::message_builder::MessageBuilder;
use super::line::{Speaker, TranscriptMessage};

/// Adds what one line says; results of tools are handed back.
pub(super) fn add_line<'a>(draft: &mut MessageBuilder, talk: TranscriptMessage<'a>) -> Vec<ToolOutput<'a>> {
    draft.set_usage(talk.cost);
    draft.add_content(talk.content)
}

/// The role of what a speaker says in words.
pub(super) fn speaker_role(speaker: Speaker) -> Role {
    match speaker {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
        Speaker::System => Role::System,
    }
}
