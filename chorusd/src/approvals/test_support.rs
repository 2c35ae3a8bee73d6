//! A sample approval for tests.

use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::permissions::Rule;
use jiff::Timestamp;
use uuid::Uuid;

/// Returns an open approval with this id and otherwise empty fields.
#[must_use]
pub fn sample_approval(id: &str) -> Approval {
    Approval {
        id: id.to_owned(),
        agent: "a".into(),
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
        decided_at: None,
        decided_by: None,
    }
}
