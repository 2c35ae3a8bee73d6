//! An owner that was overtaken writes nothing more.

use std::sync::Arc;

use chorus_catalog::{AuditFilter, DecidedApproval, FileWriteRow, MemoryScope};
use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::Status;
use chorus_store_postgres::{AgentTables, Claim, PostgresJournal};
use chorus_tests::postgres::{Database, Result};
use uuid::Uuid;

use super::both::{AGENT, OTHER, insert_session, tables_of};
use super::rows::{agent_row, approval, decision, imported, memory, task, usage_row};
use crate::cluster::{at, claim, open};

const SESSION: Uuid = Uuid::from_u128(0x5);

/// Lets another node claim the agent, as if its owner had been paused.
async fn overtake(database: &Database, by: &PostgresJournal, agent: Uuid) -> Result {
    let client = database.connect().await?;
    // The owner's next heartbeat may come between.
    loop {
        let sql = "UPDATE nodes SET heartbeat = clock_timestamp() - interval '9 seconds' WHERE id = 'a'";
        assert_eq!(client.execute(sql, &[]).await?, 1);
        if let Claim::Granted { .. } = by.claim(agent).await? {
            return Ok(());
        }
    }
}

/// All writes that concern one agent, queued at once, and the kinds of their errors.
async fn write_all(tables: &AgentTables, id: &str) -> Vec<(&'static str, Option<ErrorKind>)> {
    let number: u128 = id.len() as u128 + 100;
    let own = memory(number, AGENT, None, id);
    let decided = DecidedApproval { id: "asked".into(), status: Status::Denied, at: at(9), by: None };
    let write = FileWriteRow { agent: AGENT, path: id.to_owned(), conversation: AGENT, hash: None, at: 7 };
    let row = || agent_row(AGENT, id);
    let usage = Arc::new(imported(&[1, 2, number as u64]));
    macro_rules! kinds {
        ($($name:literal = $write:expr),* $(,)?) => {{
            // All are queued before the first is refused.
            let queued = vec![$(($name, { let write = $write; Box::pin(async move { write.await.err() })
                as futures_util::future::BoxFuture<'_, Option<chorus_base::error::Error>> })),*];
            let mut kinds = Vec::new();
            for (name, write) in queued {
                kinds.push((name, write.await.map(|failure| failure.kind)));
            }
            kinds
        }};
    }
    kinds! {
        "upsert" = tables.agents.upsert(row()),
        "upsert with memories" = tables.agents.upsert_with_memories(row(), vec![memory(number + 50, AGENT, None, "m")]),
        "approval" = tables.approvals.insert(approval(AGENT, id, 1)),
        "outcome" = tables.approvals.record_outcome(decided, decision(AGENT, id)),
        "audit" = tables.audit.append(decision(AGENT, id)),
        "task" = tables.tasks.insert(task(AGENT, number as u64, 1)),
        "end of task" = tables.tasks.update_end(task(AGENT, 1, 1)),
        "reported task" = tables.tasks.mark_reported("t1".into()),
        "memory" = tables.memories.insert(own),
        "text of memory" = tables.memories.update_text(Uuid::from_u128(1), id.to_owned()),
        "deleted memory" = tables.memories.delete(vec![Uuid::from_u128(2)]),
        "own memories" = tables.memories.delete_own(AGENT),
        "file" = tables.file_writes.record(write),
        "command" = tables.file_writes.record_command(AGENT, Uuid::from_u128(number)),
        "deleted usage" = tables.imported_usage.delete(SESSION),
        "deleted usage of agent" = tables.imported_usage.delete_of_agent(AGENT),
        "destroyed" = tables.agents.mark_destroyed(AGENT, at(9), "trash/x".into(), Vec::new()),
        "deleted" = tables.agents.delete(AGENT),
        "usage of a session" = tables.imported_usage.record(SESSION, usage),
    }
}

/// All that can be read of the agent.
async fn state(tables: &AgentTables) -> Result<Vec<String>> {
    let scope = MemoryScope { agent: AGENT, project: None };
    Ok(vec![
        format!("{:?}", tables.agents.list(true).await?),
        format!("{:?}", tables.approvals.get("asked".into()).await?),
        format!("{:?}", tables.audit.page(AuditFilter::default()).await?),
        format!("{:?}", tables.tasks.list(None, 0, 1_000).await?),
        format!("{:?}", tables.memories.list_visible(scope).await?),
        format!("{:?}", tables.file_writes.last_position().await?),
        format!("{:?}", tables.imported_usage.is_empty().await?),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_was_overtaken_unawares_changes_no_row_of_the_agent() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    let (from_a, from_b) = (tables_of(&a).0, tables_of(&b).0);
    claim(&a, AGENT).await?;
    claim(&a, OTHER).await?;
    insert_session(&database.connect().await?, 0x5, AGENT, "x").await?;
    from_a.agents.upsert(agent_row(AGENT, "first")).await?;
    from_a.approvals.insert(approval(AGENT, "asked", 1)).await?;
    from_a.tasks.insert(task(AGENT, 1, 1)).await?;
    for id in [1, 2] {
        from_a.memories.insert(memory(id, AGENT, None, &id.to_string())).await?;
    }
    from_a.imported_usage.record(SESSION, Arc::new(imported(&[1, 2]))).await?;
    overtake(&database, &b, AGENT).await?;
    let before = state(&from_b).await?;
    // In one transaction with a write to an agent that it still owns, and with one that concerns no agent.
    let other = from_a.agents.upsert(agent_row(OTHER, "other"));
    let spent = from_a.usage.insert(usage_row(AGENT, 1, None));
    for (what, kind) in write_all(&from_a, "second").await {
        assert_eq!(kind, Some(ErrorKind::Busy), "{what}");
    }
    other.await?;
    spent.await?;
    from_a.agents.delete(OTHER).await?;
    assert_eq!(state(&from_b).await?, before);
    assert_eq!(from_b.usage.spending_by_agent(at(0)).await?.0.len(), 1);
    // The new owner may do all of it.
    for (what, kind) in write_all(&from_b, "third").await {
        assert_eq!(kind, None, "{what}");
    }
    assert_ne!(state(&from_b).await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_of_a_project_may_be_changed_by_whoever_shares_it() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    claim(&a, AGENT).await?;
    let (from_a, from_b) = (tables_of(&a).0.memories, tables_of(&b).0.memories);
    for (id, project) in [(1, Some("/p")), (2, Some("/p")), (3, None)] {
        from_a.insert(memory(id, AGENT, project, &id.to_string())).await?;
    }
    from_b.update_text(Uuid::from_u128(1), "edited".into()).await?;
    from_b.delete(vec![Uuid::from_u128(2)]).await?;
    let refused = from_b.delete(vec![Uuid::from_u128(1), Uuid::from_u128(3)]).await.err().ok_or("it was deleted")?;
    assert_eq!(refused.kind, ErrorKind::Busy);
    let left: Vec<_> = from_a.list_written_by(AGENT).await?.into_iter().map(|row| row.text).collect();
    assert_eq!(left, ["edited", "3"]);
    Ok(())
}
