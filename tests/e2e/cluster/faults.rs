//! Connections that are lost, and a server that crashes.

use std::time::Duration;

use chorus_journal::{Journal, JournalAppendOutcome};
use chorus_proto::ErrorKind;
use chorus_tests::DEADLINE;
use uuid::Uuid;

use super::{ProxiedNode, Result, append, claim, open, request, texts};
use chorus_tests::postgres::{Database, Server};
use chorus_tests::wait::pause;

/// Whatever answer is lost, an append is there once, and what is acknowledged is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_at_any_byte_of_an_answer_loses_and_doubles_nothing() -> Result {
    let Some(node) = ProxiedNode::start().await? else { return Ok(()) };
    lose_answers(node).await
}

/// Cuts the connections of a node at each seventh byte of an answer.
pub(super) async fn lose_answers(node: ProxiedNode) -> Result {
    let ProxiedNode { proxy, journal, fatal, agent, context, .. } = node;
    let mut events = journal.subscribe();
    let (mut number, mut total) = (0, 0);
    for bytes in (0..400).step_by(7) {
        proxy.cut_after_answer_bytes(bytes);
        // Two in one transaction or in two, with and without a key.
        let mut keyed = request(agent, context, number, &[format!("message {number}")])?;
        keyed.key = Some(format!("key {number}"));
        let (one, two) = tokio::join!(journal.append(keyed.clone()), append(&journal, agent, context, number + 1));
        let JournalAppendOutcome::Added(one) = one? else { return Err("it was added".into()) };
        assert_eq!((one.appended, one.messages), (1, total + 1), "{bytes}");
        assert_eq!(two?, total + 2);
        (number, total) = (number + 2, total + 2);
        proxy.cut_after_answer_bytes(-1);
        keyed.first = number;
        let again = journal.append(keyed).await?;
        assert!(matches!(&again, JournalAppendOutcome::RepeatedAppend(first) if *first == one), "{again:?}");
    }
    let wanted: Vec<_> = (0..number).map(|number| format!("message {number}")).collect();
    assert_eq!(texts(&journal, context).await?, wanted);
    let mut seqs = Vec::new();
    while let Ok(event) = events.try_recv() {
        seqs.push(event.seq);
    }
    assert_eq!(seqs, (1..=u64::from(number)).collect::<Vec<_>>());
    assert_eq!(fatal.lock().len(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_server_loses_nothing_that_was_acknowledged() -> Result {
    let Some(server) = Server::start()? else { return Ok(()) };
    let database = Database::create_on(server.clone()).await?;
    let journal = open(&database, "a").await?;
    let agent = Uuid::new_v4();
    claim(&journal, agent).await?;
    let context = journal.reserve_context_no();
    let restarts = chorus_runtime::spawn_blocking(move || {
        for _ in 0..3 {
            for action in [&["stop", "-m", "immediate"][..], &["start"]] {
                server.control(action).map_err(|e| e.to_string())?;
            }
        }
        Ok::<_, String>(())
    });
    let mut number = 0;
    while !restarts.is_finished() || number < 100 {
        match append(&journal, agent, context, number).await {
            Ok(total) => number += u32::from(total == u64::from(number) + 1),
            // A start that takes longer than a heartbeat may be late.
            Err(failure) => assert!(failure.to_string().contains("lost its connection"), "{failure}"),
        }
    }
    restarts.await??;
    let wanted: Vec<_> = (0..number).map(|number| format!("message {number}")).collect();
    assert_eq!(texts(&journal, context).await?, wanted);
    Ok(())
}

/// A short absence of the database ends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn writes_wait_for_a_database_that_is_away() -> Result {
    let Some(node) = ProxiedNode::start().await? else { return Ok(()) };
    let ProxiedNode { proxy, journal, agent, context, .. } = node;
    append(&journal, agent, context, 0).await?;
    proxy.refuse();
    let waiting = append(&journal, agent, context, 1);
    tokio::pin!(waiting);
    let early = tokio::time::timeout(Duration::from_secs(1), &mut waiting).await;
    assert!(early.is_err(), "{early:?}");
    proxy.heal();
    assert_eq!(waiting.await?, 2);
    assert_eq!(texts(&journal, context).await?, ["message 0", "message 1"]);
    // Of what was sent the outcome is not known. What waits behind it for too long is not stored.
    let other = journal.reserve_context_no();
    proxy.refuse();
    let sent = append(&journal, agent, context, 2);
    tokio::pin!(sent);
    assert!(futures_util::poll!(&mut sent).is_pending());
    let behind = async {
        pause(Duration::from_millis(500)).await;
        append(&journal, agent, other, 0).await
    };
    let failed = tokio::select! {
        early = &mut sent => return Err(format!("{early:?}").into()),
        failed = behind => failed.expect_err("the database is away"),
    };
    let failed = failed.downcast::<chorus_base::error::Error>().map_err(|e| e.to_string())?;
    assert_eq!((failed.kind, failed.fatal), (ErrorKind::StorageUnavailable, false), "{failed:?}");
    let failed = journal.newest_records(context).await.map(drop).expect_err("the database is away");
    assert_eq!((failed.kind, failed.fatal), (ErrorKind::StorageUnavailable, false), "{failed:?}");
    proxy.heal();
    assert_eq!(sent.await?, 3);
    // It writes again once a heartbeat came through.
    let stored = tokio::time::timeout(DEADLINE, async {
        loop {
            match append(&journal, agent, other, 0).await {
                Ok(total) => break total,
                Err(_) => pause(Duration::from_millis(20)).await,
            }
        }
    });
    assert_eq!(stored.await?, 1);
    assert_eq!(texts(&journal, context).await?, ["message 0", "message 1", "message 2"]);
    Ok(())
}

/// Each write stands alone: one that the database refuses takes none of its neighbors with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_write_takes_no_other_with_it() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = open(&database, "a").await?;
    let agent = Uuid::new_v4();
    claim(&journal, agent).await?;
    let (one, two) = (journal.reserve_context_no(), journal.reserve_context_no());
    append(&journal, agent, one, 5).await.err().ok_or("there is no context yet")?;
    append(&journal, agent, one, 0).await?;
    let (repeated, other, next) =
        tokio::join!(append(&journal, agent, one, 0), append(&journal, agent, two, 0), append(&journal, agent, one, 1));
    let repeated = repeated.err().ok_or("a record was stored twice")?;
    assert!(repeated.to_string().contains("cannot follow record"), "{repeated}");
    assert_eq!((other?, next?), (1, 2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_and_missing_records_are_noticed() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = open(&database, "a").await?;
    let agent = Uuid::new_v4();
    claim(&journal, agent).await?;
    let client = database.connect().await?;
    let damages = [
        "DELETE FROM records WHERE number = 2 AND context_id = $1",
        "DELETE FROM records WHERE number = 4 AND context_id = $1",
        "UPDATE records SET before = 3 WHERE number = 3 AND context_id = $1",
        "UPDATE records SET number = 7 WHERE number = 3 AND context_id = $1",
        "UPDATE records SET envelope = set_byte(envelope, 20, get_byte(envelope, 20) # 1) WHERE number = 1 AND context_id = $1",
    ];
    for damage in damages {
        let context = journal.reserve_context_no();
        for number in 0..5 {
            append(&journal, agent, context, number).await?;
        }
        assert_eq!(texts(&journal, context).await?.len(), 5);
        assert_eq!(client.execute(damage, &[&context.0]).await?, 1);
        let found = texts(&journal, context).await.err().ok_or(damage)?;
        assert!(found.to_string().contains("cannot read a record"), "{damage}: {found}");
    }
    Ok(())
}

/// Once the database has lost a commit that it acknowledged, nothing more is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_went_back_in_time_is_refused() -> Result {
    let Some(node) = ProxiedNode::start().await? else { return Ok(()) };
    let ProxiedNode { database, proxy, journal, fatal, agent, context } = node;
    append(&journal, agent, context, 0).await?;
    append(&journal, agent, context, 1).await?;
    database.connect().await?.batch_execute("UPDATE writers SET batch = batch - 1").await?;
    proxy.cut();
    let refused = append(&journal, agent, context, 2).await.err().ok_or("it went on")?;
    assert_eq!(refused.to_string(), "PostgreSQL has lost transactions that it had committed");
    assert_eq!(fatal.lock().len(), 1);
    assert_eq!(texts(&journal, context).await?.len(), 2);
    Ok(())
}
