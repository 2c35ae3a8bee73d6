//! Rows for the scripts.

use chorus_catalog::memories::MAX_TEXT_BYTES;
use chorus_catalog::{
    AgentRow, ApprovalRow, AuditDecision, CallKind, ImportedCallRow, ImportedUsage, MemoryRow, NewSession,
    SessionPlacement, SessionRow, TaskRow, UsageRow,
};
use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::memory::MemorySource;
use chorus_proto::methods::permissions::{Decision, Part, Rule};
use chorus_proto::methods::tasks::TaskStatus;
use chorus_proto::{AgentStatus, SessionHeader, SessionSource, SummarySource, TokenPair, Trigger, WorkingSet};
use uuid::Uuid;

use crate::cluster::at;

pub(super) fn agent_row(id: Uuid, name: &str) -> AgentRow {
    AgentRow {
        id,
        name: name.to_owned(),
        status: AgentStatus::Active,
        created_at: at(1),
        dir: format!("agents/{name}"),
        config: format!(r#"{{"name":"{name}"}}"#),
        stamp: "1".to_owned(),
        sessions: 0,
    }
}

pub(super) fn decision(agent: Uuid, action: &str) -> AuditDecision {
    AuditDecision {
        at: at(5),
        agent,
        agent_name: "a".to_owned(),
        turn: None,
        action: action.to_owned(),
        decision: "allow".to_owned(),
        rule: "allow[0] tool:.*".to_owned(),
        user: "owner".to_owned(),
        old: None,
        new: None,
    }
}

pub(super) fn approval(agent: Uuid, id: &str, second: i64) -> ApprovalRow {
    let rule = Rule::Pattern { list: Decision::Ask, index: 3, pattern: "tool:bash:.*".to_owned() };
    let part = Part { action: "tool:bash:ls \u{0}".to_owned(), decision: Decision::Ask, rule: Rule::Default };
    let approval = Approval {
        id: id.to_owned(),
        agent: "a".to_owned(),
        conversation: (second % 2 == 0).then(|| "thread".to_owned()),
        turn_id: Uuid::from_u128(7),
        call_id: "call_1".to_owned(),
        action: "tool:bash:ls \u{0} \u{1f600}".to_owned(),
        details: Vec::new(),
        hash: "ab".repeat(32),
        rule,
        parts: vec![part],
        requester: "owner".to_owned(),
        asked_at: at(second),
        expires_at: at(second + 60),
        status: Status::Open,
        not_always: (second % 3 == 0).then(|| "it is a pipe".to_owned()),
        patterns: Vec::new(),
        turn_allowed: false,
        reason: None,
        directory: None,
        reach: None,
        decided_at: None,
        decided_by: None,
    };
    ApprovalRow { approval, agent, hash: [0xab; 32], nonce: Uuid::new_v4() }
}

pub(super) fn usage_row(agent: Uuid, second: i64, cost_usd: Option<f64>) -> UsageRow {
    UsageRow {
        at: at(second),
        agent_id: agent,
        agent_name: "a".to_owned(),
        context: None,
        conversation_id: None,
        turn_id: None,
        model: "p/m".to_owned(),
        kind: CallKind::Turn,
        input: 100,
        estimated: 90,
        output: 7,
        cache_read: 50,
        cache_write: 3,
        by_estimate: false,
        cost_usd,
        duration_ms: 11,
    }
}

/// Usage with these calls. Each output is the key.
pub(super) fn imported(keys: &[u64]) -> ImportedUsage {
    let call = |key: &u64| ImportedCallRow {
        key: *key,
        at: at(i64::try_from(*key % 100).unwrap_or(0) * 400),
        model: u32::from(key.is_multiple_of(5)),
        calls: 1,
        with_cost: u32::from(key.is_multiple_of(2)),
        lower_bound: u32::from(key.is_multiple_of(3)),
        input: 10,
        output: *key % 1_000,
        cache_read: 2,
        cache_write: 1,
        cost: (*key % 64) as f64 / 1024.0,
    };
    ImportedUsage { models: vec!["m".to_owned(), "n\u{0}".to_owned()], calls: keys.iter().map(call).collect() }
}

pub(super) fn task(agent: Uuid, number: u64, second: i64) -> TaskRow {
    TaskRow {
        id: format!("t{number}"),
        agent,
        conversation_id: number.is_multiple_of(2).then(|| Uuid::from_u128(9)),
        agent_name: "a".to_owned(),
        command: "sleep 1 && echo \u{e4}".to_owned(),
        pid: u32::MAX,
        pid_started: 77,
        boot: "boot".to_owned(),
        status: TaskStatus::Running,
        exit_code: None,
        signal: None,
        started_at: at(second),
        ended_at: None,
        log_path: format!("tasks/t{number}.log"),
    }
}

pub(super) fn memory(id: u128, agent: Uuid, project: Option<&str>, text: &str) -> MemoryRow {
    assert!(text.len() <= MAX_TEXT_BYTES);
    MemoryRow {
        id: Uuid::from_u128(id),
        agent,
        agent_name: "a".to_owned(),
        project: project.map(str::to_owned),
        text: text.to_owned(),
        path: None,
        at: at(3),
        user: "owner".to_owned(),
        source: if id.is_multiple_of(3) { MemorySource::Hand } else { MemorySource::Tool },
        message: id.is_multiple_of(2).then(|| "message".to_owned()),
    }
}

/// A session that holds a conversation of the program `codex`.
pub(super) fn session(number: u128, agent: Uuid, conversation: &str) -> NewSession {
    let header = SessionHeader {
        schema: 1,
        id: Uuid::from_u128(number),
        session_id: format!("s{number}"),
        agent_id: agent,
        agent_name: "a".to_owned(),
        conversation: None,
        source: Some(SessionSource {
            program: "codex".to_owned(),
            conversation: conversation.to_owned(),
            project: Some("/p".to_owned()),
            branch: None,
            ended_at: at(0),
            revision: 1,
            redacted: false,
            messages_sha256: String::new(),
        }),
        description: None,
        summary: None,
        summary_source: SummarySource::None,
        saved_at: at(0),
        started_at: at(0),
        trigger: Trigger::Import,
        model: None,
        message_count: 1,
        query_count: 1,
        token_estimate: 1,
        restoration_tokens: TokenPair::default(),
        parent_id: None,
        workspace_commit: None,
        tags: Vec::new(),
        working_set: WorkingSet::default(),
    };
    let row = SessionRow {
        header,
        sha256: String::new(),
        file_stamp: String::new(),
        corrupt: None,
        last_used_at: at(0),
        place: 0,
        body: None,
    };
    NewSession::new(row, SessionPlacement::AtOwnPlace)
}
