//! Who may write what of the connection to Discord.

use std::time::Duration;

use chorus_base::error::Result as TableResult;
use chorus_catalog::discord::{ClaimOutcome, DiscordTables};
use chorus_proto::ErrorKind;
use chorus_store_postgres::{Claim, DiscordLease, Owner, PostgresDiscord};
use chorus_tests::postgres::Database;
use futures_util::future::join_all;
use uuid::Uuid;

use super::{AGENTS, Result, at, channel, discord, message, post, take};
use crate::cluster::ownership::age_heartbeat;
use crate::cluster::{claim, open, open_at};

const CHANNEL: u64 = 7;

/// The kind of a refusal; `None` if it was not refused.
fn kind<T>(result: TableResult<T>) -> Option<ErrorKind> {
    result.err().map(|failure| failure.kind)
}

/// Claims a lease of a node whose heartbeat stops as if it was paused.
async fn overtake(database: &Database, from: &str, node: &PostgresDiscord, lease: DiscordLease) -> Result<i64> {
    loop {
        // Its next heartbeat may come between.
        age_heartbeat(database, from).await?;
        if let Claim::Granted { epoch } = node.leases.claim(lease).await? {
            return Ok(epoch);
        }
    }
}

/// All writes of the holder of the gateway are refused.
async fn expect_no_gateway_writes(tables: &DiscordTables) {
    let DiscordTables { channels, claims, identifies, .. } = tables;
    let busy = Some(ErrorKind::Busy);
    assert_eq!(kind(claims.claim(message(90, CHANNEL, AGENTS[0]), 5, post(CHANNEL, None, "full")).await), busy);
    assert_eq!(kind(claims.skip_messages(CHANNEL, 99, vec![post(CHANNEL, None, "skipped")]).await), busy);
    assert_eq!(kind(claims.update_request(11, "changed".into()).await), busy);
    assert_eq!(kind(claims.finish_unanswered(11).await), busy);
    assert_eq!(kind(channels.mark_seen(CHANNEL, 99).await), busy);
    assert_eq!(kind(channels.upsert(channel(8, AGENTS[0])).await), busy);
    assert_eq!(kind(channels.delete(CHANNEL).await), busy);
    assert_eq!(kind(identifies.try_record(at(0), Duration::from_secs(9), 5).await), busy);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_has_the_gateway_until_it_releases_it() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    claim(&a, AGENTS[0]).await?;
    let (a, b) = (discord(&a), discord(&b));
    assert_eq!(kind(a.tables.channels.mark_seen(CHANNEL, 1).await), Some(ErrorKind::Busy), "nobody has it yet");
    let epoch = take(&a, DiscordLease::GATEWAY).await?;
    assert_eq!(take(&a, DiscordLease::GATEWAY).await?, epoch, "it has it already");
    let owner = Owner { node: "a".into(), address: "a.example.org:7700".into() };
    assert_eq!(b.leases.claim(DiscordLease::GATEWAY).await?, Claim::OwnedBy(owner));
    a.tables.channels.upsert(channel(CHANNEL, AGENTS[0])).await?;
    // The release comes after writes that nobody has waited for.
    let claims =
        (11..61).map(|id| a.tables.claims.claim(message(id, CHANNEL, AGENTS[0]), 100, post(CHANNEL, None, "full")));
    let claims = join_all(claims.collect::<Vec<_>>());
    let (claims, released) = tokio::join!(claims, a.leases.release(DiscordLease::GATEWAY));
    released?;
    for outcome in claims {
        assert_eq!(outcome?, ClaimOutcome::Queued);
    }
    assert!(a.leases.release(DiscordLease::GATEWAY).await.is_err());
    assert!(take(&b, DiscordLease::GATEWAY).await? > epoch);
    let again = b.tables.claims.claim(message(60, CHANNEL, AGENTS[0]), 100, post(CHANNEL, None, "full")).await?;
    assert_eq!(again, ClaimOutcome::AlreadyClaimed);
    assert_eq!(b.tables.channels.get(CHANNEL).await?.map(|row| row.seen), Some(60));
    a.leases.ensure_held(DiscordLease::GATEWAY).await.err().ok_or("the old holder has it")?;
    b.leases.ensure_held(DiscordLease::GATEWAY).await?;
    Ok(())
}

/// The old holder believes that it has the gateway: only the database can refuse it.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_of_the_gateway_that_was_overtaken_unawares_writes_nothing_more() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (journal_a, journal_b) = (open(&database, "a").await?, open(&database, "b").await?);
    claim(&journal_b, AGENTS[0]).await?;
    let (a, b) = (discord(&journal_a), discord(&journal_b));
    take(&a, DiscordLease::GATEWAY).await?;
    a.tables.channels.upsert(channel(CHANNEL, AGENTS[0])).await?;
    a.tables.claims.claim(message(11, CHANNEL, AGENTS[0]), 5, post(CHANNEL, None, "full")).await?;
    overtake(&database, "a", &b, DiscordLease::GATEWAY).await?;
    // Both read the same message. The writes to other tables in the same transaction are not refused.
    let (refused, queued, taken) = tokio::join!(
        a.tables.claims.claim(message(12, CHANNEL, AGENTS[0]), 5, post(CHANNEL, None, "full")),
        a.tables.outbox.enqueue(vec![post(CHANNEL, Some("k"), "said")]),
        b.tables.claims.claim(message(12, CHANNEL, AGENTS[0]), 5, post(CHANNEL, None, "full")),
    );
    assert_eq!((kind(refused), queued, taken?), (Some(ErrorKind::Busy), Ok(()), ClaimOutcome::Queued));
    expect_no_gateway_writes(&a.tables).await;
    // A fresh handle of the same process has no lease in memory either.
    expect_no_gateway_writes(&discord(&journal_a).tables).await;
    let open_claims = b.tables.claims.list_open().await?;
    let open_claims: Vec<_> = open_claims.iter().map(|claim| (claim.message, &*claim.request)).collect();
    assert_eq!(open_claims, [(11, "request 11"), (12, "request 12")]);
    assert_eq!(
        b.tables.channels.get(CHANNEL).await?,
        Some(chorus_catalog::discord::ChannelRow { seen: 12, ..channel(CHANNEL, AGENTS[0]) })
    );
    assert_eq!(b.tables.outbox.list_keys(String::new()).await?, ["k"]);
    Ok(())
}

/// The holder of the gateway claims what the owner of the agent answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_once_by_the_owner_of_its_agent() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let nodes = [open(&database, "a").await?, open(&database, "b").await?, open(&database, "c").await?];
    let [a, b, c] = [discord(&nodes[0]), discord(&nodes[1]), discord(&nodes[2])];
    take(&a, DiscordLease::GATEWAY).await?;
    claim(&nodes[1], AGENTS[0]).await?;
    // The owner of the agent connects it; the gateway's holder adds a thread.
    b.tables.channels.upsert(channel(CHANNEL, AGENTS[0])).await?;
    a.tables
        .channels
        .upsert(chorus_catalog::discord::ChannelRow { parent: Some(CHANNEL), ..channel(8, AGENTS[0]) })
        .await?;
    for id in 11..14 {
        a.tables.claims.claim(message(id, CHANNEL, AGENTS[0]), 5, post(CHANNEL, None, "full")).await?;
    }
    b.tables.claims.mark_running(11).await?;
    assert_eq!(kind(b.tables.claims.update_request(12, "x".into()).await), Some(ErrorKind::Busy));
    assert!(a.tables.claims.update_request(12, "edited".into()).await?);
    assert_eq!(kind(c.tables.claims.finish(11, vec![post(CHANNEL, None, "stranger")]).await), Some(ErrorKind::Busy));
    assert!(b.tables.claims.finish(11, vec![post(CHANNEL, None, "answer")]).await?);
    assert!(!b.tables.claims.finish(11, vec![post(CHANNEL, None, "again")]).await?);
    assert!(a.tables.claims.finish_unanswered(13).await?, "its message was deleted");
    // The agent moves while its old owner works on a message.
    b.tables.claims.mark_running(12).await?;
    loop {
        age_heartbeat(&database, "b").await?;
        if let Claim::Granted { .. } = nodes[2].claim(AGENTS[0]).await? {
            break;
        }
    }
    let (late, answered) = tokio::join!(
        b.tables.claims.finish(12, vec![post(CHANNEL, None, "late")]),
        c.tables.claims.finish(12, vec![post(CHANNEL, None, "from the new owner")]),
    );
    // Once it is answered, nobody is refused: there is nothing to do.
    assert!(late != Ok(true), "{late:?}");
    assert!(answered?);
    assert_eq!(kind(b.tables.channels.upsert(channel(CHANNEL, AGENTS[0])).await), Some(ErrorKind::Busy));
    assert_eq!(kind(b.tables.channels.delete(CHANNEL).await), Some(ErrorKind::Busy));
    take(&c, DiscordLease::Channel(CHANNEL)).await?;
    let mut sent = Vec::new();
    while let Some(due) = c.tables.outbox.begin_next(CHANNEL, at(1)).await? {
        sent.push(due.nonce);
        c.tables.outbox.mark_sent(due.id, 100).await?;
    }
    assert_eq!(sent, ["answer", "from the new owner"]);
    assert!(c.tables.channels.delete(CHANNEL).await?);
    assert!(c.tables.channels.list_threads().await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_restarts_takes_its_leases_back() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (old, fatal) = open_at(&database, database.port(), "a").await?;
    let old = discord(&old);
    let epoch = take(&old, DiscordLease::GATEWAY).await?;
    let new = discord(&open(&database, "a").await?);
    assert!(take(&new, DiscordLease::GATEWAY).await? > epoch);
    old.tables.channels.mark_seen(CHANNEL, 5).await.err().ok_or("the old process wrote")?;
    assert_eq!(fatal.lock().len(), 1);
    new.tables.channels.mark_seen(CHANNEL, 5).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_gives_its_leases_up() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = open(&database, "a").await?;
    let a = discord(&journal);
    let leases = [DiscordLease::GATEWAY, DiscordLease::Channel(CHANNEL)];
    for lease in leases {
        take(&a, lease).await?;
    }
    journal.close().await?;
    let b = discord(&open(&database, "b").await?);
    for lease in leases {
        take(&b, lease).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_nodes_that_claim_at_once_one_gets_the_lease() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let mut nodes = Vec::new();
    for number in 0..6 {
        nodes.push(discord(&open(&database, &format!("node {number}")).await?));
    }
    for round in 0..20 {
        let lease = DiscordLease::Channel(u64::from(Uuid::new_v4().as_fields().0) + 1);
        let claims = join_all(nodes.iter().map(|node| node.leases.claim(lease))).await;
        let mut holders = Vec::new();
        for (node, claim) in nodes.iter().zip(claims) {
            if let Claim::Granted { .. } = claim? {
                holders.push(node);
            }
        }
        assert_eq!(holders.len(), 1, "{round}");
        holders[0].leases.release(lease).await?;
    }
    Ok(())
}

/// The deletion of old claims is not committed yet when the message is received once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_claim_is_deleted_at_that_moment_is_not_claimed_again() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = open(&database, "a").await?;
    claim(&journal, AGENTS[0]).await?;
    let a = discord(&journal);
    take(&a, DiscordLease::GATEWAY).await?;
    let DiscordTables { channels, claims, .. } = &a.tables;
    channels.upsert(channel(CHANNEL, AGENTS[0])).await?;
    claims.claim(message(11, CHANNEL, AGENTS[0]), 5, post(CHANNEL, None, "full")).await?;
    claims.finish_unanswered(11).await?;
    let other = database.connect().await?;
    other.batch_execute(&format!("BEGIN; SELECT prune_claims({})", i64::MAX)).await?;
    let mut again = claims.claim(message(11, CHANNEL, AGENTS[0]), 5, post(CHANNEL, None, "full"));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut again).await;
    assert!(early.is_err(), "{early:?}");
    other.batch_execute("COMMIT").await?;
    assert_eq!(again.await?, ClaimOutcome::AlreadyClaimed);
    assert!(claims.claimed_after(CHANNEL, 0).await?.is_empty());
    Ok(())
}
