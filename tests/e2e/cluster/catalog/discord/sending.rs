//! Posts are sent by one node at a time, whichever node queues and changes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_catalog::discord::DuePost;
use chorus_proto::ErrorKind;
use chorus_store_postgres::{Claim, DiscordLease, PostgresDiscord};
use chorus_tests::postgres::Database;
use serde_json::{Map, Value};

use super::{Result, at, discord, post, take};
use crate::cluster::open;
use crate::cluster::ownership::age_heartbeat;

const CHANNEL: u64 = 7;
const LEASE: DiscordLease = DiscordLease::Channel(CHANNEL);

async fn begin(node: &PostgresDiscord, second: i64) -> Result<DuePost> {
    Ok(node.tables.outbox.begin_next(CHANNEL, at(second)).await?.ok_or("nothing is to be sent")?)
}

/// Refuses all that only the sender of a post may do.
async fn expect_not_the_sender(node: &PostgresDiscord, post: i64) {
    let outbox = &node.tables.outbox;
    let busy = Some(ErrorKind::Busy);
    let kind = |result: chorus_base::error::Result<()>| result.err().map(|failure| failure.kind);
    assert_eq!(kind(outbox.mark_unsent(post).await), busy);
    assert_eq!(kind(outbox.mark_sent(post, 50).await), busy);
    assert_eq!(kind(outbox.abandon(post).await), busy);
    assert_eq!(kind(outbox.abandon_channel(CHANNEL).await.map(drop)), busy);
    assert_eq!(kind(outbox.begin_next(CHANNEL, at(9)).await.map(drop)), busy);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_was_overtaken_decides_nothing_about_its_post() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (discord(&open(&database, "a").await?), discord(&open(&database, "b").await?));
    a.tables.outbox.enqueue(vec![post(CHANNEL, Some("k"), "one"), post(CHANNEL, None, "two")]).await?;
    take(&a, LEASE).await?;
    let first = begin(&a, 0).await?;
    assert_eq!((&*first.nonce, first.tried_at), ("one", None));
    expect_not_the_sender(&b, first.id).await;
    loop {
        age_heartbeat(&database, "a").await?;
        if let Claim::Granted { .. } = b.leases.claim(LEASE).await? {
            break;
        }
    }
    // It may have arrived: the new sender knows since when.
    let again = begin(&b, 5).await?;
    assert_eq!((again.id, again.tried_at), (first.id, Some(at(0))));
    expect_not_the_sender(&a, first.id).await;
    // The lease comes back to the first node, which did not try the post in this epoch.
    b.leases.release(LEASE).await?;
    take(&a, LEASE).await?;
    let late = a.tables.outbox.mark_unsent(first.id).await;
    assert_eq!(late.err().map(|failure| failure.kind), Some(ErrorKind::Busy));
    let third = begin(&a, 6).await?;
    assert_eq!((third.id, third.tried_at), (first.id, Some(at(0))), "it is still known that it may have arrived");
    a.tables.outbox.mark_sent(first.id, 50).await?;
    let second = begin(&a, 7).await?;
    assert_eq!((&*second.nonce, second.tried_at, second.after), ("two", None, Some(50)));
    a.tables.outbox.mark_sent(second.id, 51).await?;
    assert_eq!(a.tables.outbox.begin_next(CHANNEL, at(8)).await?, None);
    // Other nodes may change the message.
    let edited = b.tables.outbox.edit("k".into(), r#"{"content":"new"}"#.into(), "change".into()).await?;
    assert_eq!(edited, Some(CHANNEL));
    let change = begin(&a, 9).await?;
    assert_eq!((change.changes, &*change.nonce), (Some(Some(50)), "change"));
    Ok(())
}

/// Merges a body into a message, as Discord does with an edit.
fn apply(message: &mut Map<String, Value>, body: &str) -> Result {
    let Value::Object(changes) = serde_json::from_str(body)? else { return Err("no object".into()) };
    message.extend(changes);
    Ok(())
}

/// Nodes change the same message while another one sends it: each change arrives, in the order of each node.
#[tokio::test(flavor = "multi_thread")]
async fn changes_by_several_nodes_while_a_post_is_sent_all_arrive() -> Result {
    const EDITS: usize = 40;
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (discord(&open(&database, "a").await?), discord(&open(&database, "b").await?));
    let sender = discord(&open(&database, "c").await?);
    take(&sender, LEASE).await?;
    let is_done = Arc::new(AtomicBool::new(false));
    let edits = |node: &PostgresDiscord, name: &'static str| {
        let outbox = node.tables.outbox.clone();
        async move {
            for number in 0..EDITS {
                let body = format!(r#"{{"{name}":{number},"{name} {number}":true}}"#);
                let mut new = post(CHANNEL, Some("k"), &format!("{name} {number}"));
                new.body.clone_from(&body);
                if number % 3 == 0 {
                    outbox.enqueue(vec![new]).await?;
                } else {
                    outbox.edit("k".into(), body, format!("{name} {number}")).await?.ok_or("there is no post")?;
                }
            }
            Ok::<_, chorus_tests::postgres::Error>(())
        }
    };
    let done = is_done.clone();
    let (first, second) = (edits(&a, "a"), edits(&b, "b"));
    let editing = async move {
        let results = tokio::join!(first, second);
        done.store(true, Ordering::SeqCst);
        results.0.and(results.1)
    };
    let sending = async {
        let (mut messages, mut next) = (BTreeMap::<u64, Map<String, Value>>::new(), 100);
        loop {
            let was_done = is_done.load(Ordering::SeqCst);
            let Some(due) = sender.tables.outbox.begin_next(CHANNEL, at(0)).await? else {
                if was_done {
                    return Ok::<_, chorus_tests::postgres::Error>(messages);
                }
                tokio::task::yield_now().await;
                continue;
            };
            let message = match due.changes {
                None => {
                    next += 1;
                    next
                }
                Some(changed) => changed.ok_or("a change came before its message")?,
            };
            apply(messages.entry(message).or_default(), &due.body)?;
            sender.tables.outbox.mark_sent(due.id, message).await?;
        }
    };
    let (edited, messages) = tokio::join!(editing, sending);
    edited?;
    let messages = messages?;
    assert_eq!(messages.len(), 1, "one key is one message");
    let message = messages.into_values().next().ok_or("no message")?;
    for name in ["a", "b"] {
        assert_eq!(message.get(name), Some(&Value::from(EDITS - 1)), "{message:?}");
        let arrived = (0..EDITS).filter(|number| message.contains_key(&format!("{name} {number}")));
        assert_eq!(arrived.count(), EDITS);
    }
    Ok(())
}
