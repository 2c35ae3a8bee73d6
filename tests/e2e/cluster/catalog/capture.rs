//! Captured transcripts, and the conversations that are not captured again.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use chorus_catalog::{CaptureTable, CapturedFile, SkippedLine};
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::postgres::Database;
use chorus_tests::rng::Rng;
use uuid::Uuid;

use super::{Result, at, open_sqlite};
use crate::cluster::{ProxiedNode, open};

/// A transcript with one of a few paths, which are not valid UTF-8.
fn file(rng: &mut Rng) -> CapturedFile {
    let place = rng.below(12) as u8;
    let text = |rng: &mut Rng| match rng.below(4) {
        0 => None,
        1 => Some(String::new()),
        // Other programs write any character.
        2 => Some("with NUL: \0 and an umlaut: \u{e4}".to_owned()),
        _ => Some(rng.next_u64().to_string()),
    };
    CapturedFile {
        source: ["codex", "opencode"][rng.below(2) as usize].to_owned(),
        path: OsString::from_vec(vec![b'/', place, 0xff]).into(),
        device: rng.next_u64(),
        inode: rng.next_u64(),
        read_bytes: rng.below(1 << 40),
        size: rng.below(1 << 40),
        modified_at: at(rng.below(1000) as i64),
        conversations: rng.below(2),
        messages: rng.below(1000),
        sessions: match rng.below(4) {
            0 => None,
            count => Some((1..count).map(|_| Uuid::from_u128(u128::from(rng.next_u64()))).collect()),
        },
        skipped_lines: rng.below(3),
        skipped: text(rng).map(|reason| SkippedLine { line: rng.below(100), reason }),
        marker: text(rng),
        failure: text(rng),
        unsaved: rng.below(2) == 1,
    }
}

/// The results of random requests. `proxy` cuts the connections at random answers.
async fn script(table: &dyn CaptureTable, proxy: Option<&FaultProxy>) -> Result<Vec<String>> {
    let (mut rng, mut cuts) = (Rng::new(5), Rng::new(6));
    let mut lines = Vec::new();
    for step in 0..300 {
        if let Some(proxy) = proxy {
            proxy.cut_after_answer_bytes(cuts.below(500) as i64);
        }
        match rng.below(20) {
            0 => table.forget_held_back().await?,
            1 if step > 200 => table.read_all_again().await?,
            2..=5 => table.add_tombstone(rng.below(8).to_string()).await?,
            6 => table.remove_tombstones((0..rng.below(3)).map(|_| rng.below(8).to_string()).collect()).await?,
            _ => table.record(file(&mut rng)).await?,
        }
        if let Some(proxy) = proxy {
            proxy.cut_after_answer_bytes(-1);
        }
        if step % 10 == 0 {
            lines.push(state(table).await?);
        }
    }
    Ok(lines)
}

async fn state(table: &dyn CaptureTable) -> Result<String> {
    let mut files = table.files().await?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut deleted = table.deleted_conversations().await?;
    deleted.sort();
    Ok(format!("{files:?} {deleted:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn transcripts_belong_to_a_node_and_deletions_to_all() -> Result {
    let home = tempfile::tempdir()?;
    let store = open_sqlite(&home)?;
    let wanted = script(&*store.catalog.capture, None).await?;
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    let (a, b) = (a.capture_table(), b.capture_table());
    for (sqlite, postgres) in wanted.iter().zip(script(&*a, None).await?) {
        assert_eq!(*sqlite, postgres);
    }
    assert!(b.files().await?.is_empty());
    b.record(file(&mut Rng::new(1))).await?;
    b.add_tombstone("b".into()).await?;
    b.read_all_again().await?;
    assert_eq!((b.files().await?.len(), b.files().await?[0].inode), (1, 0));
    let before = wanted.last().ok_or("no state")?;
    let deleted = a.deleted_conversations().await?;
    assert!(deleted.contains(&"b".to_owned()), "{deleted:?}");
    a.remove_tombstones(vec!["b".into()]).await?;
    assert_eq!(state(&*a).await?, state(&*store.catalog.capture).await?, "{before}");
    Ok(store.close().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_lose_and_double_nothing_of_capture() -> Result {
    let home = tempfile::tempdir()?;
    let store = open_sqlite(&home)?;
    let wanted = script(&*store.catalog.capture, None).await?;
    let Some(ProxiedNode { proxy, journal, fatal, .. }) = ProxiedNode::start().await? else { return Ok(()) };
    for (sqlite, postgres) in wanted.iter().zip(script(&*journal.capture_table(), Some(&proxy)).await?) {
        assert_eq!(*sqlite, postgres);
    }
    assert_eq!(fatal.lock().len(), 0);
    Ok(store.close().await?)
}
