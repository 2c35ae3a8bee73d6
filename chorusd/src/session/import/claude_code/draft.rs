//! Lines become messages: a reply is gathered from its lines, an answer falls apart into results and words.

use chorus_proto::Role;

use super::super::anthropic::content::ToolOutput;
use super::super::anthropic::draft::Draft;
use super::line::{Speaker, Talk};

/// Adds what one line says; results of tools are handed back.
pub(super) fn add<'a>(draft: &mut Draft, talk: Talk<'a>) -> Vec<ToolOutput<'a>> {
    draft.cost(talk.cost);
    draft.take(talk.content)
}

/// The role of what a speaker says in words.
pub(super) fn role(speaker: Speaker) -> Role {
    match speaker {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
        Speaker::System => Role::System,
    }
}
