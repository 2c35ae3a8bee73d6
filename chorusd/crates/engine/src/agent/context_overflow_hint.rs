//! The hint for a request that was too long: which part of it is the largest.

use chorus_proto::PieceKind;
use chorus_session::token_estimate::{MessageSize, tokens_of_piece};

use super::prompt::Prompt;

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestPart {
    Prompt,
    Docs,
    Memory,
    WorkingSet,
    Conversation,
    Tools,
}

impl RequestPart {
    fn name(self) -> &'static str {
        match self {
            Self::Prompt => "the system prompt",
            Self::Docs => "the files in docs/",
            Self::Memory => "the agent's memory",
            Self::WorkingSet => "the working set",
            Self::Conversation => "the conversation",
            Self::Tools => "tools",
        }
    }

    fn advice(self, agent: &str) -> String {
        match self {
            Self::Prompt => format!("shorten it with `chorusctl agent config {agent} system_prompt TEXT`"),
            Self::Docs => "shorten those files".to_owned(),
            Self::Memory => "remove entries with `chorusctl memory remove`".to_owned(),
            Self::WorkingSet | Self::Conversation => {
                format!("compact it with `chorusctl --agent {agent} context compact`")
            }
            Self::Tools => {
                format!("choose a profile with fewer tools: `chorusctl agent config {agent} permissions PROFILE`")
            }
        }
    }
}

/// Returns a hint that names the largest part of `prompt` and how to make it smaller.
#[must_use]
pub(super) fn largest_part_hint(prompt: &Prompt, agent: &str) -> String {
    let parts = measure_parts(prompt);
    let total: u64 = parts.iter().map(|(_, tokens)| tokens).sum();
    let Some((largest, tokens)) = parts.into_iter().max_by_key(|(_, tokens)| *tokens) else {
        return "choose a model with a larger context".to_owned();
    };
    let (name, advice) = (largest.name(), largest.advice(agent));
    format!(
        "the largest part is {name}, about {tokens} of {total} tokens: {advice}, or choose a model with a \
     larger context"
    )
}

fn measure_parts(prompt: &Prompt) -> [(RequestPart, u64); 6] {
    let of = |kind| {
        let pieces = prompt.pieces.iter().zip(&prompt.request.system).filter(|(found, _)| **found == kind);
        pieces.map(|(_, text)| tokens_of_piece(text)).sum()
    };
    [
        (RequestPart::Prompt, of(PieceKind::Prompt)),
        (RequestPart::Docs, of(PieceKind::Docs)),
        (RequestPart::Memory, of(PieceKind::Memory)),
        (RequestPart::WorkingSet, of(PieceKind::WorkingSet)),
        (RequestPart::Tools, chorus_llm::tokens_of_tools(&prompt.request.tools)),
        (
            RequestPart::Conversation,
            prompt.request.messages.iter().map(|message| MessageSize::of_message(message).tokens()).sum(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use chorus_agent_core::AgentSettings;
    use chorus_permissions::{Profile, ProfileSpec};
    use chorus_proto::{NewMessage, Role, WorkingSet};
    use chorus_session::stored_message::StoredMessage;

    use super::super::model_limits::ModelLimits;
    use super::super::prompt::build_prompt;
    use super::*;
    use crate::tools::OfferedTools;

    #[test]
    fn what_takes_the_most_room_is_named_with_what_makes_it_less() {
        let of = |prompted: usize, remembered: usize, said: usize, tools: OfferedTools| {
            let settings = AgentSettings { system_prompt: Some("x".repeat(prompted)), ..AgentSettings::default() };
            let message =
                NewMessage::text(Role::User, "x".repeat(said)).complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH);
            let record = [StoredMessage::new(&message).unwrap()];
            let memory = Some("x".repeat(remembered));
            let asked =
                build_prompt(&settings, memory, &record, &WorkingSet::default(), ModelLimits::default(), tools, false);
            largest_part_hint(&asked, "a")
        };
        for (prompted, remembered, said, due) in [
            (
                4000,
                400,
                400,
                "the largest part is the system prompt, about 1005 of 1219 tokens: shorten it with `chorusctl agent",
            ),
            (
                400,
                4000,
                400,
                "the largest part is the agent's memory, about 1005 of 1219 tokens: remove entries with `chorusctl memory",
            ),
            (
                400,
                400,
                4000,
                "the largest part is the conversation, about 1009 of 1219 tokens: compact it with `chorusctl --agent a",
            ),
        ] {
            let said = of(prompted, remembered, said, OfferedTools::default());
            assert!(said.starts_with(due) && said.ends_with("or choose a model with a larger context"), "{said}");
        }
        let everything = Profile::new(ProfileSpec { allow: vec![".*".into()], ..ProfileSpec::default() }).unwrap();
        let tools = crate::tools::offer_tools(&everything, &[], None);
        assert!(of(4, 4, 4, tools).starts_with("the largest part is tools"));
    }
}
