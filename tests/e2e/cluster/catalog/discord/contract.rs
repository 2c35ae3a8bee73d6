//! The same requests have the same results in SQLite and in PostgreSQL, whatever answers are lost.

use chorus_catalog::discord::DiscordTables;
use chorus_proto::ErrorKind;
use chorus_store_postgres::{DiscordLease, PostgresJournal};
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::pgbouncer::PoolMode;
use chorus_tests::postgres::Database;

use super::script::{CHANNELS, Script};
use super::{AGENTS, Result, channel, discord, message, open_sqlite, post, take};
use crate::cluster::{claim, open, open_at};

/// Claims all that the requests need.
async fn tables_of(journal: &PostgresJournal) -> Result<DiscordTables> {
    let node = discord(journal);
    for agent in AGENTS {
        claim(journal, agent).await?;
    }
    take(&node, DiscordLease::GATEWAY).await?;
    for channel in CHANNELS {
        take(&node, DiscordLease::Channel(channel)).await?;
    }
    Ok(node.tables)
}

/// Runs random requests against both.
async fn compare(seed: u64, steps: u64, pooler: Option<PoolMode>, is_cut: bool) -> Result {
    let home = tempfile::tempdir()?;
    let store = open_sqlite(&home)?;
    let mut sqlite = Script::new(store.catalog.discord.clone(), None, seed);
    sqlite.run(steps).await?;
    let Some(database) = Database::create().await? else { return Ok(()) };
    let port = match pooler {
        Some(mode) => database.port_through(mode)?,
        None => Some(database.port()),
    };
    let Some(port) = port else { return Ok(()) };
    let proxy = FaultProxy::start(port).await?;
    let (journal, fatal) = open_at(&database, proxy.port(), "a").await?;
    let tables = tables_of(&journal).await?;
    let mut postgres = Script::new(tables, is_cut.then_some(&proxy), seed);
    postgres.run(steps).await?;
    for (sqlite, postgres) in sqlite.lines.iter().zip(&postgres.lines) {
        assert_eq!(sqlite, postgres, "seed {seed}");
    }
    assert_eq!(sqlite.lines.len(), postgres.lines.len());
    assert_eq!(fatal.lock().len(), 0);
    Ok(store.close().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_have_the_same_results() -> Result {
    for seed in 0..2 {
        compare(seed, 400, None, false).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_have_the_same_results_through_a_pooler() -> Result {
    compare(100, 200, Some(PoolMode::Transaction), false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_whose_answers_are_lost_are_carried_out_once() -> Result {
    compare(200, 300, None, true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_whose_answers_are_lost_behind_a_pooler_are_carried_out_once() -> Result {
    compare(300, 200, Some(PoolMode::Transaction), true).await
}

/// Requests that every database refuses, or PostgreSQL only.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_is_refused() -> Result {
    let home = tempfile::tempdir()?;
    let store = open_sqlite(&home)?;
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = open(&database, "a").await?;
    let postgres = tables_of(&journal).await?;
    for tables in [&store.catalog.discord, &postgres] {
        let huge = tables.claims.claim(message(u64::MAX, 7, AGENTS[0]), 5, post(7, None, "1")).await;
        assert_eq!(huge.err().map(|failure| failure.kind), Some(ErrorKind::StorageFailed));
        let huge = tables.channels.upsert(channel(u64::MAX, AGENTS[0])).await;
        assert_eq!(huge.err().map(|failure| failure.kind), Some(ErrorKind::StorageFailed));
        let huge = tables.channels.get(u64::MAX).await;
        assert_eq!(huge.err().map(|failure| failure.kind), Some(ErrorKind::StorageFailed));
        // Of several posts none is queued if one is refused.
        let twice = vec![post(100, None, "x"), post(101, None, "y"), post(102, None, "x")];
        let twice = tables.outbox.enqueue(twice).await;
        assert_eq!(twice.err().map(|failure| failure.kind), Some(ErrorKind::StorageFailed));
        assert!(tables.outbox.list_channels().await?.is_empty());
    }
    let nul = postgres.outbox.enqueue(vec![post(100, None, "with \0")]).await;
    assert_eq!(nul.err().map(|failure| failure.kind), Some(ErrorKind::InvalidParams));
    Ok(store.close().await?)
}
