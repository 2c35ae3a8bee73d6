//! Samples for the tests of this crate and of those above it.

use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::permissions::Rule;
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{Session, SessionHeader, SummarySource, TokenPair, WorkingSet};
use jiff::Timestamp;
use uuid::Uuid;

use crate::effect::SessionDraft;

/// Returns the session that a save of `draft` writes.
#[must_use]
pub fn sample_session(draft: &SessionDraft) -> Session {
    let header = SessionHeader {
        schema: SESSION_SCHEMA,
        id: Uuid::from_u128(77),
        session_id: "2026-02-12_x".into(),
        agent_id: draft.settings.id,
        agent_name: draft.settings.name.clone(),
        conversation: None,
        source: None,
        description: None,
        summary: None,
        summary_source: SummarySource::None,
        saved_at: draft.now,
        started_at: draft.started_at,
        trigger: draft.trigger,
        model: None,
        message_count: draft.totals.messages,
        query_count: 0,
        token_estimate: 0,
        restoration_tokens: TokenPair::default(),
        parent_id: draft.parent,
        workspace_commit: None,
        tags: Vec::new(),
        working_set: WorkingSet::default(),
    };
    Session {
        header,
        short_id: "x".into(),
        unique_prefix: None,
        file_path: String::new(),
        available: true,
        corrupt: None,
    }
}

/// Returns an open approval with this id and otherwise empty fields.
#[must_use]
pub fn sample_approval(id: &str) -> Approval {
    Approval {
        id: id.to_owned(),
        agent: "a".into(),
        conversation: None,
        turn_id: Uuid::nil(),
        call_id: String::new(),
        action: String::new(),
        details: Vec::new(),
        hash: String::new(),
        rule: Rule::Default,
        parts: Vec::new(),
        requester: String::new(),
        asked_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::UNIX_EPOCH,
        status: Status::Open,
        not_always: None,
        patterns: Vec::new(),
        turn_allowed: false,
        reason: None,
        directory: None,
        reach: None,
        decided_at: None,
        decided_by: None,
    }
}
