//! An agent that is created with its channel.

use std::sync::Arc;

use chorus_catalog::{AgentRow, SessionChanges};
use chorus_proto::{AgentStatus, ErrorKind};
use chorus_tests::postgres::Database;

use super::{AGENTS, Result, at, channel, post};
use crate::cluster::{claim, open};

fn row(name: &str) -> AgentRow {
    AgentRow {
        id: AGENTS[0],
        name: name.to_owned(),
        status: AgentStatus::Active,
        created_at: at(0),
        dir: format!("agents/{name}"),
        config: "{}".to_owned(),
        stamp: String::new(),
        sessions: 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_written_with_its_channel_by_its_owner_only() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = open(&database, "a").await?;
    let changes = Arc::new(SessionChanges::default());
    let tables = journal.discord(changes.clone()).tables;
    let write = |name: &str| tables.channels.upsert_with_agent(row(name), channel(7, AGENTS[0]), post(7, None, name));
    assert_eq!(write("early").await.err().map(|failure| failure.kind), Some(ErrorKind::Busy));
    claim(&journal, AGENTS[0]).await?;
    write("one").await?;
    assert_eq!(changes.take().agents.len(), 1);
    assert_eq!(tables.channels.list(Some(AGENTS[0])).await?, [channel(7, AGENTS[0])]);
    assert_eq!(tables.outbox.list_channels().await?, [7]);
    // The nonce of the post is used: nothing of it is stored.
    let again = AgentRow { dir: "elsewhere".into(), ..row("one") };
    let refused = tables.channels.upsert_with_agent(again, channel(8, AGENTS[0]), post(7, None, "one")).await;
    assert_eq!(refused.err().map(|failure| failure.kind), Some(ErrorKind::StorageFailed));
    assert!(changes.take().is_empty());
    assert_eq!(tables.channels.get(8).await?, None);
    let stored = database.connect().await?.query_one("SELECT name, dir FROM agents", &[]).await?;
    assert_eq!((stored.get::<_, &str>(0), stored.get::<_, &str>(1)), ("one", "agents/one"));
    Ok(())
}
