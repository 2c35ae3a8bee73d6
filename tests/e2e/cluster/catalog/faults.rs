//! Connections that are lost: each write is done once, and its result is the right one.

use std::sync::Arc;

use chorus_catalog::{
    AuditDecision, AuditFilter, DecidedApproval, FileWriteRow, ImportedDivision, ImportedUsageFilter, MemoryScope,
    UsageFilter,
};
use chorus_proto::methods::approvals::Status;
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::postgres::{Database, Result};
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::both::{AGENT, OTHER, PostgresHome, Script, SqliteHome, assert_same};
use super::rows::{agent_row, approval, decision, imported, memory, task, usage_row};
use crate::cluster::at;

/// Writes of all tables in one transaction or several. Notes their results, and returns the numbers of two rows of usage.
async fn write_all(script: &mut Script, round: i64) -> Result<[i64; 2]> {
    let tables = script.tables.clone();
    let number = u128::try_from(round).unwrap_or(0) * 10;
    let text = format!("text {round}");
    let asked = approval(AGENT, &format!("id {round}"), round);
    let decided = DecidedApproval { id: format!("id {round}"), status: Status::Approved, at: at(round), by: None };
    let new = || Some(round.to_string());
    let setting = AuditDecision { new: new(), ..decision(Uuid::nil(), &text) };
    let write = FileWriteRow { agent: AGENT, path: "p".into(), conversation: AGENT, hash: None, at: round as u64 };
    let added = vec![memory(number + 1, AGENT, None, &format!("{text} added")), memory(number + 2, AGENT, None, &text)];
    // The calls queue all of it, in this order.
    let one = tables.usage.insert(usage_row(AGENT, round, Some(0.1)));
    let agents = (
        tables.memories.insert(memory(number, AGENT, None, &text)),
        tables.memories.insert(memory(number + 3, AGENT, None, &text)),
        tables.agents.upsert_with_memories(agent_row(AGENT, &format!("a{round}")), added),
    );
    let approvals = (
        tables.approvals.insert(asked.clone()),
        tables.approvals.insert(approval(AGENT, &asked.approval.id, 0)),
        tables.approvals.record_outcome(decided.clone(), decision(AGENT, &text)),
        tables.approvals.record_outcome(decided, decision(AGENT, &text)),
    );
    let others = (
        tables.audit.append(decision(OTHER, &text)),
        tables.settings.set_audited("idle_timeout", setting),
        tables.tasks.insert(task(OTHER, round as u64, round)),
        tables.tasks.mark_reported(format!("t{}", round - 1)),
        tables.file_writes.record(write),
    );
    let two = tables.usage.insert(usage_row(OTHER, round, None));
    // A transaction that was sent twice leaves a gap between the numbers.
    let (one, agents, approvals, others, two) = tokio::join!(
        one,
        async { tokio::join!(agents.0, agents.1, agents.2) },
        async { tokio::join!(approvals.0, approvals.1, approvals.2, approvals.3) },
        async { tokio::join!(others.0, others.1, others.2, others.3, others.4) },
        two,
    );
    script.note(&format!("round {round}"), &(agents, approvals, others));
    let agents = script.changes.take().agents;
    script.note("told to the index", &agents);
    Ok([one?, two?])
}

/// All that is in the tables.
async fn note_state(script: &mut Script) -> Result {
    let tables = script.tables.clone();
    script.note("agents", &tables.agents.list(true).await?);
    script.note("memories", &tables.memories.list_visible(MemoryScope { agent: AGENT, project: None }).await?);
    script.note("approvals", &tables.approvals.list_decided(None, 1_000).await?);
    script.note("open", &tables.approvals.list_open().await?);
    script.note("setting", &tables.settings.get("idle_timeout").await?);
    script.note("tasks", &tables.tasks.list(None, 0, 1_000).await?);
    script.note("not reported", &tables.tasks.list_at_start().await?.unreported);
    script.note("files", &tables.file_writes.history(AGENT, "p".into()).await?);
    let filter = UsageFilter { agents: Vec::new(), since: None, zone: TimeZone::UTC, by_conversation: true };
    script.note("usage", &tables.usage.list_daily(filter).await?);
    let (mut log, _) = tables.audit.page(AuditFilter::default()).await?;
    // A transaction that was sent twice leaves a gap.
    for (number, entry) in (1..).zip(&mut log) {
        entry.id = number;
    }
    script.note("log", &log);
    let walk = tables.audit.verify(None).await?;
    script.note("chain", &(walk.rows, walk.head, walk.broken));
    let filter =
        ImportedUsageFilter { agents: Vec::new(), since: None, zone: TimeZone::UTC, division: ImportedDivision::None };
    let mut sums = tables.imported_usage.sums(filter).await?;
    sums.sort_by(|one, other| one.model.cmp(&other.model));
    script.note("imported", &sums);
    Ok(())
}

/// Byte of an answer at which the connections are cut in each round.
fn cuts() -> impl Iterator<Item = (i64, i64)> {
    (1..).zip((0..2_400).step_by(47))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_at_any_byte_of_an_answer_loses_and_doubles_no_write() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let proxy = FaultProxy::start(database.port()).await?;
    let node = PostgresHome::open_at(database, proxy.port()).await?;
    let home = SqliteHome::open()?;
    let (mut sqlite, mut postgres) = (home.script(), node.script().await?);
    for script in [&sqlite, &postgres] {
        script.add_session(1, AGENT, "x").await?;
    }
    let mut numbers = Vec::new();
    for (round, bytes) in cuts() {
        write_all(&mut sqlite, round).await?;
        proxy.cut_after_answer_bytes(bytes);
        numbers.extend(write_all(&mut postgres, round).await?);
        let usage = Arc::new(imported(&(1..=round as u64).collect::<Vec<_>>()));
        sqlite.tables.imported_usage.record(Uuid::from_u128(1), usage.clone()).await?;
        // It reads first, and a read that is cut off fails.
        while postgres.tables.imported_usage.record(Uuid::from_u128(1), usage.clone()).await.is_err() {}
        proxy.cut_after_answer_bytes(-1);
    }
    proxy.heal();
    let stored = node.database.connect().await?.query("SELECT id FROM usage ORDER BY id", &[]).await?;
    assert_eq!(numbers, stored.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>());
    note_state(&mut sqlite).await?;
    note_state(&mut postgres).await?;
    assert_same(&sqlite, &postgres, &"cut");
    Ok(())
}
