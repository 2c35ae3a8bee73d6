//! Writes of sessions by nodes that lost an agent, and over connections that are cut.

use chorus_catalog::{CatalogWrite, NewSession, PendingSummary, SessionPlacement, SessionQuery, SessionRow};
use chorus_proto::ErrorKind;
use chorus_store_postgres::{Claim, PostgresJournal};
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::pgbouncer::PoolMode;
use chorus_tests::postgres::Database;
use chorus_tests::rng::Rng;
use uuid::Uuid;

use super::super::{Result, at, claim, open, open_at};
use super::Tables;
use super::session_rows::{AGENTS, header, row_of};

/// A row that is like no other one.
fn distinct_row(rng: &mut Rng, agent: Uuid, number: u128) -> Result<SessionRow> {
    let header = header(rng, agent)?;
    let mut row = row_of(rng, header);
    row.header.id = Uuid::from_u128(agent.as_u128() << 120 | number);
    row.header.session_id = format!("2027-01-25_{number}");
    Ok(row)
}

fn insert(tables: &Tables, row: &SessionRow) -> CatalogWrite<String> {
    let summary = Some(PendingSummary { described: true });
    tables.sessions.insert(NewSession { summary, ..NewSession::new(row.clone(), SessionPlacement::Last) })
}

/// Each write that changes the row of a session, or what hangs on it.
fn writes(tables: &Tables, row: &SessionRow, new: &SessionRow) -> Vec<(&'static str, CatalogWrite<()>)> {
    let Tables { sessions, summaries } = tables;
    let id = row.header.id;
    let inserted = insert(tables, new);
    vec![
        ("insert", Box::pin(async move { inserted.await.map(drop) })),
        ("upsert", sessions.upsert(SessionRow { file_stamp: "other".into(), ..row.clone() })),
        ("undo", sessions.undo_insert(row.header.clone())),
        ("update", sessions.update(SessionRow { file_stamp: "other".into(), ..row.clone() })),
        ("replace", sessions.replace(SessionRow { sha256: "other".into(), ..row.clone() }, None)),
        ("move", sessions.move_to_agent(SessionRow { place: 1, ..row.clone() })),
        ("touch", sessions.touch(id, at(9_999_999))),
        ("delete", sessions.delete(id)),
        ("purge", sessions.purge(id)),
        ("push", summaries.push(id, PendingSummary { described: false })),
        ("remove", summaries.remove(id)),
    ]
}

/// Everything that is stored of the sessions.
async fn dump(database: &Database) -> Result<Vec<String>> {
    let client = database.connect().await?;
    let sql = "SELECT s::text FROM sessions s UNION ALL SELECT q::text FROM summaries_wanted q
         UNION ALL SELECT c::text FROM session_counts c UNION ALL SELECT sum(sessions)::text FROM session_totals ORDER BY 1";
    Ok(client.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// Lets another node take an agent over, whose owner does not notice.
async fn overtake(database: &Database, node: &PostgresJournal, agent: Uuid) -> Result {
    let client = database.connect().await?;
    loop {
        let sql = "UPDATE nodes SET heartbeat = clock_timestamp() - interval '9 seconds' WHERE id = 'a'";
        client.execute(sql, &[]).await?;
        if let Claim::Granted { .. } = node.claim(agent).await? {
            return Ok(());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overtaken_owner_changes_no_session() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    let (agent, kept) = (AGENTS[0], AGENTS[1]);
    for agent in [agent, kept] {
        claim(&a, agent).await?;
    }
    let (tables, mut rng) = (Tables::of_postgres(&a), Rng::new(11));
    let (row, new) = (distinct_row(&mut rng, agent, 1)?, distinct_row(&mut rng, agent, 2)?);
    let (own, own_new) = (distinct_row(&mut rng, kept, 3)?, distinct_row(&mut rng, kept, 4)?);
    insert(&tables, &row).await?;
    insert(&tables, &own).await?;
    overtake(&database, &b, agent).await?;
    let before = dump(&database).await?;
    for (what, write) in writes(&tables, &row, &new) {
        let refused = write.await.err().ok_or(what)?;
        assert_eq!(refused.kind, ErrorKind::Busy, "{what}: {refused:?}");
        assert_eq!(refused.message, "another node has taken the agent over", "{what}");
    }
    // A row of the lost agent can be taken neither by its id nor into another agent.
    let mut moved = row.clone();
    moved.header.agent_id = kept;
    let by_move = tables.sessions.move_to_agent(moved.clone()).await.err().ok_or("it was moved")?;
    let by_upsert = tables.sessions.upsert(moved).await.err().ok_or("it was replaced")?;
    assert_eq!((by_move.kind, by_upsert.kind), (ErrorKind::Busy, ErrorKind::Busy));
    assert_eq!(dump(&database).await?, before);
    // What it still owns it may change, and the new owner may change what it took.
    for (what, write) in writes(&tables, &own, &own_new) {
        write.await.map_err(|failure| format!("{what}: {failure}"))?;
    }
    for (what, write) in writes(&Tables::of_postgres(&b), &row, &new) {
        write.await.map_err(|failure| format!("{what}: {failure}"))?;
    }
    // An agent that was given up is changed no more either.
    a.release(kept).await?;
    let refused = tables.sessions.touch(own_new.header.id, at(1)).await.err().ok_or("it was touched")?;
    assert_eq!(refused.kind, ErrorKind::Busy);
    Ok(())
}

/// Cuts the connections at answers of each write. Whatever is lost, the write is there once, with its result.
async fn lose_answers(database: Database, port: u16) -> Result {
    let proxy = FaultProxy::start(port).await?;
    let (journal, fatal) = open_at(&database, proxy.port(), "a").await?;
    for agent in [AGENTS[0], AGENTS[1]] {
        claim(&journal, agent).await?;
    }
    let (tables, mut rng) = (Tables::of_postgres(&journal), Rng::new(12));
    let sessions = &tables.sessions;
    let mut total = 0;
    for number in 0..40_u128 {
        let mut cut = || proxy.cut_after_answer_bytes(i64::try_from(rng.below(420)).unwrap_or_default());
        let mut rows = Rng::new(number.try_into()?);
        let (one, two) = (distinct_row(&mut rows, AGENTS[0], number)?, distinct_row(&mut rows, AGENTS[1], number)?);
        let id = one.header.id;
        cut();
        // Two in one transaction or in two.
        let (first, second) = tokio::join!(insert(&tables, &one), insert(&tables, &two));
        let ids = vec![id, two.header.id];
        total += 2;
        proxy.cut_after_answer_bytes(-1);
        assert_eq!(vec![first?, second?], sessions.short_ids(ids).await?);
        let refused = insert(
            &tables,
            &SessionRow {
                header: {
                    let mut header = one.header.clone();
                    header.id = Uuid::from_u128(u128::MAX - number);
                    header
                },
                ..one.clone()
            },
        );
        cut();
        assert_eq!(refused.await.err().ok_or("inserted twice")?.kind, ErrorKind::AlreadyExists);
        cut();
        sessions.replace(SessionRow { sha256: "grown".into(), ..one.clone() }, None).await?;
        cut();
        sessions.touch(id, at(77)).await?;
        cut();
        tables.summaries.remove(id).await?;
        cut();
        let unused = sessions.get_unused_since(id, at(78)).await?.ok_or("it was not found")?;
        assert_eq!((unused.sha256, unused.last_used_at), ("grown".to_owned(), at(77)));
        cut();
        let mut other = two.clone();
        other.header.id = Uuid::from_u128(two.header.id.as_u128() | 1 << 60);
        other.file_stamp = "found".into();
        sessions.upsert(other.clone()).await?;
        cut();
        let mut moved = other;
        moved.header.agent_id = AGENTS[0];
        moved.header.session_id = format!("{}-moved", moved.header.session_id);
        moved.header.conversation = None;
        sessions.move_to_agent(moved.clone()).await?;
        if number % 2 == 0 {
            cut();
            sessions.delete(moved.header.id).await?;
            total -= 1;
        }
        proxy.cut_after_answer_bytes(-1);
        let query = SessionQuery { limit: 2, ..SessionQuery::default() };
        assert_eq!(sessions.list(query).await?.1, total);
        assert_eq!(tables.summaries.get(id).await?, None);
    }
    assert_eq!(sessions.ids_of_agent(AGENTS[0]).await?.len() as u64, total);
    assert!(sessions.ids_of_agent(AGENTS[1]).await?.is_empty());
    let stamps = sessions.stamps_after(0, 1000).await?;
    assert_eq!(stamps.len() as u64, total);
    assert_eq!(fatal.lock().len(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_cut_lose_and_double_no_write() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let port = database.port();
    lose_answers(database, port).await
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_cut_lose_and_double_no_write_through_a_pooler() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let Some(port) = database.port_through(PoolMode::Transaction)? else { return Ok(()) };
    lose_answers(database, port).await
}
