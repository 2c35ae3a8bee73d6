//! The same script has the same results with SQLite and with PostgreSQL.

use std::collections::HashSet;
use std::sync::Arc;

use chorus_catalog::{NewSession, SessionChanges, SessionPlacement, SessionQuery};
use chorus_proto::{AgentStatus, ErrorKind};
use chorus_tests::pgbouncer::PoolMode;
use chorus_tests::postgres::Database;
use chorus_tests::rng::Rng;
use uuid::Uuid;

use super::super::{Result, claim, open, open_at};
use super::session_rows::{AGENTS, header, row, row_of};
use super::session_script::Script;
use super::{SqliteHome, Tables, add_agent};

/// Writes of a script, each with reads after it.
const ROUNDS: u64 = 160;

async fn run(tables: Tables, seed: u64) -> Result<Vec<String>> {
    let mut script = Script::new(tables, seed);
    for round in 0..ROUNDS {
        script.write().await?;
        script.read().await?;
        if round % 20 == 19 {
            script.read_all().await?;
        }
    }
    Ok(script.lines)
}

fn status_of(agent: Uuid) -> AgentStatus {
    if agent == AGENTS[2] { AgentStatus::Destroyed } else { AgentStatus::Active }
}

/// Runs a random script against both, PostgreSQL reached directly or through a pooler.
async fn compare(seed: u64, pooler: Option<PoolMode>) -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let port = match pooler {
        Some(mode) => database.port_through(mode)?,
        None => Some(database.port()),
    };
    let Some(port) = port else { return Ok(()) };
    let (journal, _) = open_at(&database, port, "a").await?;
    let home = SqliteHome::create()?;
    for agent in AGENTS {
        home.add_agent(agent, status_of(agent)).await?;
        add_agent(&database, agent, status_of(agent)).await?;
        claim(&journal, agent).await?;
    }
    let sqlite = run(home.tables(), seed).await?;
    let tables = Tables::of_postgres(&journal);
    let postgres = run(tables.clone(), seed).await?;
    for (number, (sqlite, postgres)) in sqlite.iter().zip(&postgres).enumerate() {
        assert_eq!(sqlite, postgres, "line {number} with seed {seed}");
    }
    assert_eq!(sqlite.len(), postgres.len());
    let count = |what: &str| postgres.iter().filter(|line| line.starts_with(what)).count();
    assert!(count("insert: \"") > 5 && count("insert: AlreadyExists") > 5, "rows are inserted, and collide");
    let (of_sqlite, of_postgres) = (home.tables().sessions.changes().take(), tables.sessions.changes().take());
    assert!(of_sqlite.sessions.is_subset(&of_postgres.sessions), "{of_sqlite:?} {of_postgres:?}");
    assert!(of_postgres.agents.is_empty());
    home.store.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_random_script_has_the_same_results_as_in_sqlite() -> Result {
    for seed in [1, 2] {
        compare(seed, None).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_random_script_has_the_same_results_through_a_pooler() -> Result {
    compare(4, Some(PoolMode::Transaction)).await?;
    compare(5, Some(PoolMode::Session)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_near_the_end_is_that_of_one_list() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = open(&database, "a").await?;
    for agent in AGENTS {
        claim(&journal, agent).await?;
    }
    let sessions = Tables::of_postgres(&journal).sessions;
    let mut rng = Rng::new(7);
    for number in 0..60 {
        let mut row = row(&mut rng)?;
        row.header.id = Uuid::from_u128(number);
        row.header.session_id = format!("2027-01-25_{number}");
        // Some have the same place.
        row.place = i64::try_from(number / 2)?;
        sessions.insert(NewSession::new(row, SessionPlacement::AtOwnPlace)).await?;
    }
    let also = vec![AGENTS[1], AGENTS[2], AGENTS[0]];
    for (agent, also) in [(None, Vec::new()), (Some(AGENTS[0]), Vec::new()), (Some(AGENTS[0]), also)] {
        let query = SessionQuery { agent, also, limit: u64::MAX, ..SessionQuery::default() };
        let (all, total) = sessions.list(query.clone()).await?;
        assert_eq!(all.len() as u64, total);
        assert!(all.is_sorted_by_key(|row| std::cmp::Reverse(row.place)));
        for offset in 0..total + 2 {
            let page = sessions.list(SessionQuery { offset, limit: 7, ..query.clone() }).await?;
            let wanted: Vec<_> = all.iter().skip(usize::try_from(offset)?).take(7).cloned().collect();
            assert_eq!(page, (wanted, total), "{offset}");
        }
    }
    Ok(())
}

/// The search index of a node is about its own agents, and what another node writes is not in it.
#[tokio::test(flavor = "multi_thread")]
async fn changes_stamps_and_pending_summaries_are_those_of_the_nodes_own_agents() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let nodes = [open(&database, "a").await?, open(&database, "b").await?];
    let mut rng = Rng::new(8);
    let mut tables = Vec::new();
    for (node, agent) in nodes.iter().zip(AGENTS) {
        claim(node, agent).await?;
        let changes = Arc::<SessionChanges>::default();
        let sessions = node.session_table(changes.clone());
        let mut ids = HashSet::new();
        for number in 0..3_u128 {
            let header = header(&mut rng, agent)?;
            let mut row = row_of(&mut rng, header);
            row.header.id = Uuid::from_u128(agent.as_u128() * 16 + number);
            row.header.session_id = format!("2027-01-25_{number}");
            ids.insert(row.header.id);
            let summary = Some(chorus_catalog::PendingSummary { described: false });
            let new = NewSession::new(row, SessionPlacement::Last);
            sessions.insert(NewSession { summary, ..new }).await?;
        }
        tables.push((sessions, changes, node.summary_queue(), ids));
    }
    for (sessions, changes, summaries, ids) in tables {
        changes.wait().await;
        sessions.commit_changes().await?;
        let stamps = sessions.stamps_after(0, 10).await?;
        assert_eq!(stamps.iter().map(|stamp| stamp.id).collect::<HashSet<_>>(), ids);
        assert_eq!(changes.take().sessions, ids);
        assert_eq!(summaries.list().await?.into_iter().collect::<HashSet<_>>(), ids);
        let all = sessions.list(SessionQuery { limit: 10, ..SessionQuery::default() }).await?;
        assert_eq!((all.0.len(), all.1), (6, 6), "lists are of all agents");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_postgres_cannot_store_are_refused_and_long_paths_are_not() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = open(&database, "a").await?;
    claim(&journal, AGENTS[0]).await?;
    let sessions = Tables::of_postgres(&journal).sessions;
    let mut rng = Rng::new(9);
    let mut row = loop {
        let header = header(&mut rng, AGENTS[0])?;
        if header.source.is_some() {
            break row_of(&mut rng, header);
        }
    };
    let mut with_nul = row.clone();
    with_nul.header.tags = vec!["a\0b".to_owned()];
    let refused =
        sessions.insert(NewSession::new(with_nul, SessionPlacement::Last)).await.err().ok_or("it was stored")?;
    assert_eq!((refused.kind, &*refused.message), (ErrorKind::InvalidParams, "a text has the character NUL"));
    let refused = sessions.list_named(None, "\0".to_owned()).await.err().ok_or("it was found")?;
    assert_eq!(refused.kind, ErrorKind::InvalidParams);
    let path = format!("/{}/end", "\u{e4}long/".repeat(900));
    row.header.source.as_mut().ok_or("no source")?.project = Some(path.clone());
    let id = row.header.id;
    sessions.insert(NewSession::new(row, SessionPlacement::Last)).await?;
    let project = |directory: Option<&str>, name: Option<&str>| chorus_catalog::ProjectFilter {
        directory: directory.map(str::to_owned),
        name: name.map(str::to_owned),
        agents: Vec::new(),
    };
    let parent = path.trim_end_matches("/end");
    let sibling = format!("{}x", path.trim_end_matches("end"));
    for (filter, found) in [
        (project(Some(&path), None), true),
        (project(Some(parent), None), true),
        (project(None, Some("end")), true),
        (project(Some(&sibling), None), false),
        (project(None, Some("nd")), false),
    ] {
        assert_eq!(sessions.ids_of_project(filter.clone()).await? == [id], found, "{filter:?}");
    }
    Ok(())
}
