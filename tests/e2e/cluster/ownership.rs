//! Who may write.

use std::time::Duration;

use chorus_journal::{Journal, Ownership as _};
use chorus_proto::ErrorKind;
use chorus_store_postgres::{Claim, Owner};
use uuid::Uuid;

use super::{ProxiedNode, Result, append, claim, open, open_at, texts};
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::postgres::Database;

/// Makes the heartbeat of a node stale, as if it had been paused.
pub(super) async fn age_heartbeat(database: &Database, node: &str) -> Result {
    let client = database.connect().await?;
    let sql = "UPDATE nodes SET heartbeat = clock_timestamp() - interval '9 seconds' WHERE id = $1";
    assert_eq!(client.execute(sql, &[&node]).await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_has_one_owner_and_moves_when_it_is_released() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    let agent = Uuid::new_v4();
    assert_eq!(claim(&a, agent).await?, 1);
    let owner = Owner { node: "a".into(), address: "a.example.org:7700".into() };
    assert_eq!(b.claim(agent).await?, Claim::OwnedBy(owner));
    let context = a.reserve_context_no();
    // The release comes after writes that nobody has waited for.
    let writes: Vec<_> = (0..50).map(|number| append(&a, agent, context, number)).collect();
    let writes = futures_util::future::join_all(writes);
    b.want(agent).await?;
    let (written, released) = tokio::join!(writes, a.release(agent));
    for (number, total) in (1..).zip(written) {
        assert_eq!(total?, number);
    }
    assert_eq!(released?.as_deref(), Some("b"));
    assert_eq!(claim(&b, agent).await?, 2);
    let live = b.live_contexts().await?;
    assert_eq!(live.iter().map(|row| (row.context, row.totals.messages)).collect::<Vec<_>>(), [(context, 50)]);
    assert_eq!(append(&b, agent, context, 50).await?, 51);
    let refused = append(&a, agent, context, 51).await.err().ok_or("the old owner wrote")?;
    assert_eq!(refused.to_string(), "another node has taken the agent over");
    assert_eq!(texts(&b, context).await?.len(), 51);
    Ok(())
}

/// The old owner believes that it holds the agent: only the database can refuse it.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_was_overtaken_unawares_writes_nothing_more() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    let (moved, kept) = (Uuid::new_v4(), Uuid::new_v4());
    claim(&a, moved).await?;
    claim(&a, kept).await?;
    let (one, two) = (a.reserve_context_no(), a.reserve_context_no());
    append(&a, moved, one, 0).await?;
    append(&a, kept, two, 0).await?;
    let mut epoch = None;
    // The owner's next heartbeat may come between.
    while epoch.is_none() {
        age_heartbeat(&database, "a").await?;
        if let Claim::Granted { epoch: granted } = b.claim(moved).await? {
            epoch = Some(granted);
        }
    }
    assert_eq!(epoch, Some(2));
    b.live_contexts().await?;
    // In one transaction with writes to an agent that it still owns.
    let (refused, written, more) =
        tokio::join!(append(&a, moved, one, 1), append(&a, kept, two, 1), append(&b, moved, one, 1));
    assert!(refused.is_err());
    assert_eq!((written?, more?), (2, 2));
    let deadline = a.set_deadline(one, None).await.err().ok_or("a deadline was set")?;
    assert_eq!(deadline.kind, ErrorKind::Busy);
    assert_eq!(texts(&b, one).await?, ["message 0", "message 1"]);
    // It may claim the agent again, but what it had in memory is of an earlier epoch.
    b.release(moved).await?;
    assert_eq!(claim(&a, moved).await?, 3);
    append(&a, moved, one, 2).await.err().ok_or("it wrote behind what it does not know")?;
    assert_eq!(a.live_contexts().await?.len(), 2);
    assert_eq!(append(&a, moved, one, 2).await?, 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_restarts_takes_its_agents_back_and_its_old_process_ends() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let agent = Uuid::new_v4();
    let (old, fatal) = open_at(&database, database.port(), "a").await?;
    claim(&old, agent).await?;
    let context = old.reserve_context_no();
    append(&old, agent, context, 0).await?;
    let new = open(&database, "a").await?;
    assert_eq!(claim(&new, agent).await?, 2);
    let refused = append(&old, agent, context, 1).await.err().ok_or("the old process wrote")?;
    assert_eq!(refused.to_string(), r#"another chorusd has started as the node "a""#);
    assert_eq!(fatal.lock().clone(), [r#"another chorusd has started as the node "a""#]);
    assert!(old.ensure_healthy().is_err());
    let live = new.live_contexts().await?;
    assert_eq!(live.iter().map(|row| row.totals.messages).collect::<Vec<_>>(), [1]);
    assert!(new.reserve_context_no() > old.reserve_context_no());
    Ok(())
}

/// The transaction of a process that was paused keeps the row locked, until the database ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_waits_for_an_open_transaction_and_the_database_ends_it() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let b = open(&database, "b").await?;
    let agent = Uuid::new_v4();
    claim(&b, agent).await?;
    b.release(agent).await?;
    let paused = database.connect().await?;
    paused.batch_execute("SET idle_in_transaction_session_timeout = '1s'; BEGIN").await?;
    paused.execute("SELECT FROM heads WHERE agent_id = $1 AND epoch = 1 FOR SHARE", &[&agent]).await?;
    let early = tokio::time::timeout(Duration::from_millis(300), b.claim(agent)).await;
    assert!(early.is_err(), "{early:?}");
    // The claim above may be carried out although nobody waits for it.
    assert!(claim(&b, agent).await? >= 2);
    assert!(paused.batch_execute("COMMIT").await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_begins_nothing_after_six_seconds() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let proxy = FaultProxy::start(database.port()).await?;
    let (a, _) = open_at(&database, proxy.port(), "a").await?;
    let b = open(&database, "b").await?;
    let agent = Uuid::new_v4();
    claim(&a, agent).await?;
    let context = a.reserve_context_no();
    append(&a, agent, context, 0).await?;
    proxy.fall_silent();
    let begun = std::time::Instant::now();
    let refused = loop {
        match a.ping().await_for(Duration::from_millis(200)).await {
            Some(Err(failure)) => break failure,
            _ => assert!(begun.elapsed() < Duration::from_secs(20)),
        }
    };
    assert_eq!((refused.kind, &*refused.message), (ErrorKind::Busy, "this node has lost its connection to PostgreSQL"));
    // Others may claim two seconds later.
    let granted = loop {
        if let Claim::Granted { epoch } = b.claim(agent).await? {
            break epoch;
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        chorus_tests::wait::pause(Duration::from_millis(100)).await;
    };
    assert_eq!(granted, 2);
    assert!(begun.elapsed() >= Duration::from_secs(6));
    b.live_contexts().await?;
    assert_eq!(append(&b, agent, context, 1).await?, 2);
    proxy.heal();
    Ok(())
}

/// Nobody answers at its port: it ended, or a node that lives is cut off.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_taken_for_dead_early_only_if_its_heartbeat_is_late_too() -> Result {
    let Some(node) = ProxiedNode::start().await? else { return Ok(()) };
    let b = open(&node.database, "b").await?;
    append(&node.journal, node.agent, node.context, 0).await?;
    let owner = || Owner { node: "a".into(), address: "a.example.org:7700".into() };
    // Over two heartbeats, and at another address than its own.
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        assert!(!b.presume_dead(owner()).await?, "after {:?}", begun.elapsed());
        assert_eq!(b.claim(node.agent).await?, Claim::OwnedBy(owner()));
        chorus_tests::wait::pause(Duration::from_millis(50)).await;
    }
    node.proxy.fall_silent();
    let begun = std::time::Instant::now();
    while !b.presume_dead(owner()).await? {
        assert!(!b.presume_dead(Owner { address: "elsewhere:7700".into(), ..owner() }).await?);
        assert!(begun.elapsed() < Duration::from_secs(20));
        chorus_tests::wait::pause(Duration::from_millis(50)).await;
    }
    assert!(b.presume_dead(owner()).await?, "another node may have found it out first");
    assert_eq!(claim(&b, node.agent).await?, 2);
    b.live_contexts().await?;
    assert_eq!(append(&b, node.agent, node.context, 1).await?, 2);
    // It lives after all, and writes nothing.
    node.proxy.heal();
    loop {
        match append(&node.journal, node.agent, node.context, 1).await {
            Err(failure) if failure.to_string().contains("taken the agent over") => break,
            Err(_) => chorus_tests::wait::pause(Duration::from_millis(50)).await,
            Ok(_) => return Err("the old owner wrote".into()),
        }
        assert!(begun.elapsed() < Duration::from_secs(40));
    }
    assert_eq!(texts(&b, node.context).await?.len(), 2);
    Ok(())
}

trait AwaitFor<T> {
    /// Waits at most `limit`; `None` if it takes longer.
    async fn await_for(self, limit: Duration) -> Option<T>;
}

impl<T, F: Future<Output = T>> AwaitFor<T> for F {
    async fn await_for(self, limit: Duration) -> Option<T> {
        tokio::time::timeout(limit, self).await.ok()
    }
}
