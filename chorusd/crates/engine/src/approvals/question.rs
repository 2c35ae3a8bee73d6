//! Questions and their answers.

use chorus_base::requester::Requester;
use chorus_proto::methods::approvals::{Detail, Reach};
use chorus_proto::methods::permissions::Verdict;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A question to a person whether an action may run.
#[derive(Debug, Clone)]
pub struct Question {
    pub agent: Uuid,
    pub agent_name: String,
    /// Name of the conversation that asks; `None` for `main`.
    pub conversation_name: Option<String>,
    pub turn: Uuid,
    /// The model's id of the tool call.
    pub call_id: String,
    /// The whole action, exactly as it would run.
    pub action: String,
    /// Effects that the action itself does not show.
    pub details: Vec<Detail>,
    /// The definition of a server's tool, which a permanent approval covers.
    pub definition: Option<String>,
    pub verdict: Verdict,
    /// Why the action cannot be approved permanently; `None` if it can.
    pub not_always: Option<String>,
    /// The patterns that would allow it from now on; empty if none is proven to cover no other program.
    pub patterns: Vec<String>,
    /// Whether an approval of the whole turn covers it.
    pub turn_allowed: bool,
    /// Why it is asked about, in plain words that continue "asked because".
    pub reason: String,
    /// Absolute path of the directory that it runs in.
    pub directory: String,
    /// What a command may reach.
    pub reach: Option<Reach>,
    /// The requester of the turn, on which it depends who may answer.
    pub requester: Requester,
}

/// What an approval covers besides the action that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalScope {
    Once,
    /// Exactly this action from now on.
    Action,
    /// What the patterns of the question cover from now on.
    Pattern,
    /// What else the turn asks about.
    Turn,
}

impl ApprovalScope {
    /// Returns the decision in the audit log.
    pub(crate) fn audit_word(self) -> &'static str {
        match self {
            Self::Once => "approved",
            Self::Action => "approved_always",
            Self::Pattern => "approved_pattern",
            Self::Turn => "approved_turn",
        }
    }
}

/// An answer, or the lack of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    Approved {
        by: Requester,
        /// For how long.
        scope: ApprovalScope,
    },
    Denied {
        /// `None` if nobody answered: the question expired, or the turn ended.
        by: Option<Requester>,
        /// The reason, for the model.
        why: String,
    },
}

impl Question {
    /// Returns the SHA-256 of everything that an approval is bound to: each part as its length in 8 bytes and its
    /// bytes.
    #[must_use]
    pub fn binding_hash(&self, nonce: Uuid) -> [u8; 32] {
        let requester = self.requester.to_string();
        let mut sum = Sha256::new();
        let details = self.details.iter().flat_map(|detail| [detail.name.as_bytes(), detail.text.as_bytes()]);
        for part in [
            nonce.as_bytes().as_slice(),
            self.agent.as_bytes(),
            self.turn.as_bytes(),
            self.call_id.as_bytes(),
            requester.as_bytes(),
            self.action.as_bytes(),
        ]
        .into_iter()
        .chain(details)
        {
            sum.update((part.len() as u64).to_be_bytes());
            sum.update(part);
        }
        sum.finalize().into()
    }
}

/// Creates an id of six letters and digits that are not easily confused.
pub(super) fn new_short_id() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let random = Uuid::new_v4();
    // The first six bytes of a random UUID are all random.
    random.as_bytes()[..6].iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::permissions::{Decision, Rule};

    use super::*;

    #[test]
    fn an_approval_is_bound_to_each_of_its_parts() {
        let verdict = Verdict { decision: Decision::Ask, rule: Rule::Default, parts: Vec::new() };
        let question = Question {
            agent: Uuid::from_u128(1),
            agent_name: "a".into(),
            conversation_name: None,
            turn: Uuid::from_u128(2),
            call_id: "c".into(),
            action: "tool:bash:ls".into(),
            details: Vec::new(),
            definition: None,
            verdict,
            not_always: None,
            patterns: Vec::new(),
            turn_allowed: true,
            reason: String::new(),
            directory: String::new(),
            reach: None,
            requester: Requester::Owner,
        };
        let nonce = Uuid::from_u128(3);
        let bound = question.binding_hash(nonce);
        assert_eq!(bound, question.clone().binding_hash(nonce));
        let person = Requester::Person { id: "1".into(), name: String::new(), roles: Vec::new() };
        for other in [
            Question { agent: Uuid::from_u128(9), ..question.clone() },
            Question { turn: Uuid::from_u128(9), ..question.clone() },
            Question { call_id: "d".into(), ..question.clone() },
            Question { action: "tool:bash:ls ".into(), ..question.clone() },
            Question { requester: person, ..question.clone() },
            Question { details: vec![Detail { name: "to".into(), text: "x".into() }], ..question.clone() },
        ] {
            assert_ne!(bound, other.binding_hash(nonce));
        }
        assert_ne!(bound, question.binding_hash(Uuid::from_u128(4)));
    }

    #[test]
    fn ids_can_be_typed() {
        let ids: Vec<String> = (0..100).map(|_| new_short_id()).collect();
        assert!(ids.iter().all(|id| id.len() == 6 && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())));
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    }
}
