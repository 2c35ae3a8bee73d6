//! Deletions: copies beyond their limit, and bodies that no row names.

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use chorus_tests::postgres::Database;
use uuid::Uuid;

use super::node::Node;
use super::{Pair, Result, claim, header, messages, objects};

fn hours_ago(hours: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(hours * 3600)
}

/// Sets the time of the last read of a file; its stamp stays.
fn set_read(path: &Path, hours: u64) -> Result {
    Ok(File::open(path)?.set_times(FileTimes::new().set_accessed(hours_ago(hours)))?)
}

#[tokio::test]
async fn copies_that_were_not_read_for_longest_are_deleted_until_the_others_fit() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (bucket, agent) = (tempfile::tempdir()?, Uuid::new_v4());
    let limit = 250_000;
    let node = Node::start(&database, "a", bucket.path(), limit).await?;
    node.add_agent(agent).await?;
    claim(&node.journal, agent).await?;
    let saved: Vec<_> = (0..5).map(|n| header(agent, &format!("2027-01-15_{n}"), 100)).collect();
    for header in &saved {
        node.save(header, &messages(100, 900)).await?;
    }
    for (header, hours) in saved.iter().zip([3, 9, 5, 7, 1]) {
        set_read(&node.path(header), hours)?;
    }
    // The first is one that somebody has changed, which does not keep it: its row and its body are the truth. The second is
    // being read, and the oldest but for that.
    set_read(&node.path(&saved[0]), 20)?;
    fs::write(node.path(&saved[0]), [fs::read(node.path(&saved[0]))?, b"\n".to_vec()].concat())?;
    set_read(&node.path(&saved[0]), 20)?;
    node.read(saved[1].id).await?;
    set_read(&node.path(&saved[1]), 30)?;
    let report = node.shared.evict().await?;
    let left: Vec<bool> = saved.iter().map(|header| node.path(header).exists()).collect();
    assert_eq!(left, [false, true, false, false, true]);
    assert!(report.deleted == 3 && report.bytes <= limit, "{report:?}");
    for header in saved.iter().filter(|header| !node.path(header).exists()).collect::<Vec<_>>() {
        assert_eq!(node.read(header.id).await?.1.len(), 100, "it is fetched again");
    }
    Ok(())
}

#[tokio::test]
async fn a_session_that_another_node_deletes_leaves_no_file() -> Result {
    let Some(pair) = Pair::start().await? else { return Ok(()) };
    let [purged, deleted, kept] =
        ["one", "two", "three"].map(|name| header(pair.agent, &format!("2027-01-15_{name}"), 3));
    for header in [&purged, &deleted, &kept] {
        pair.a.save(header, &messages(3, 10)).await?;
    }
    pair.move_agent(&pair.a, &pair.b).await?;
    for header in [&purged, &deleted, &kept] {
        pair.b.read(header.id).await?;
    }
    // A file of which nobody knows anything, for example one that somebody has put there.
    let stray = pair.b.path(&kept).with_file_name("2027-01-15_stray.json");
    let unknown = chorus_proto::SessionHeader { id: Uuid::new_v4(), ..kept.clone() };
    let text = fs::read_to_string(pair.b.path(&kept))?.replace(&kept.id.to_string(), &unknown.id.to_string());
    fs::write(&stray, text)?;
    pair.move_agent(&pair.b, &pair.a).await?;
    pair.a.store.catalog.sessions.purge(purged.id).await?;
    pair.a.store.catalog.sessions.delete(deleted.id).await?;
    assert_eq!(pair.b.shared.delete_leftovers().await?, 2);
    let left = [&purged, &deleted, &kept].map(|header| pair.b.path(header).exists());
    assert_eq!((left, stray.exists()), ([false, false, true], true));
    assert_eq!(pair.b.shared.delete_leftovers().await?, 0);
    assert_eq!(pair.b.read(kept.id).await?.1.len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_file_whose_messages_are_nowhere_else_is_never_deleted() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (bucket, agent) = (tempfile::tempdir()?, Uuid::new_v4());
    let node = Node::start(&database, "a", bucket.path(), 1).await?;
    node.add_agent(agent).await?;
    claim(&node.journal, agent).await?;
    let (named, bare) = (header(agent, "2027-01-15_named", 10), header(agent, "2027-01-15_bare", 10));
    for header in [&named, &bare] {
        node.save(header, &messages(10, 100)).await?;
    }
    let client = database.connect().await?;
    let without = "UPDATE sessions SET body_key = NULL, body_count = NULL, body_bytes = NULL, object_bytes = NULL,
         body_sha256 = NULL, index_sha256 = NULL WHERE id = $1";
    client.execute(without, &[&bare.id]).await?;
    let stray = node.dir().join("sessions/2027-01-15_stray.json");
    fs::copy(node.path(&named), &stray)?;
    for path in [&node.path(&named), &node.path(&bare), &stray] {
        set_read(path, 50)?;
    }
    assert_eq!(node.shared.evict().await?.deleted, 1);
    assert!(!node.path(&named).exists() && node.path(&bare).exists() && stray.exists());
    Ok(())
}

#[tokio::test]
async fn a_sweep_deletes_old_bodies_that_no_row_names() -> Result {
    let Some(pair) = Pair::start().await? else { return Ok(()) };
    let header = header(pair.agent, "2027-01-15_one", 3);
    let row = pair.a.save(&header, &messages(3, 10)).await?;
    let named = pair.a.bucket.join(row.body.ok_or("no body")?.key);
    // What a crash between the object and its row leaves.
    let orphan = |epoch: u64| named.with_file_name(format!("{epoch:016x}-{}", Uuid::new_v4()));
    let (old, young) = (orphan(1), orphan(2));
    for path in [&old, &young] {
        fs::copy(&named, path)?;
    }
    for path in [&old, &named] {
        File::options().write(true).open(path)?.set_modified(hours_ago(30))?;
    }
    // Any node may sweep, also bodies of agents that it does not own.
    let report = pair.b.shared.sweep().await?;
    assert_eq!((report.named, report.young, report.deleted), (1, 1, 1), "{report:?}");
    let mut left = vec![named, young];
    left.sort();
    assert_eq!(objects(&pair.a.bucket), left);
    Ok(())
}
