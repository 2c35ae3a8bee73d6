//! The sweep deletes what no row names, and nothing else.

use std::collections::HashSet;
use std::fs::File;
use std::time::SystemTime;

use chorus_session_objects::{BodyKey, MIN_AGE, NAME_WITHIN, NamedBodies, SessionBodies as _, SweepReport, sweep};

use super::*;

/// The rows: keys that are named, and how many were asked about at once.
#[derive(Default)]
struct Rows {
    named: Mutex<HashSet<String>>,
    asked: Mutex<Vec<usize>>,
    /// Is named in the moment that the rows are asked: committed after the list was made.
    late: Mutex<Option<String>>,
}

impl NamedBodies for Rows {
    fn named<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, chorus_base::error::Result<HashSet<String>>> {
        let late = self.late.lock().take();
        let mut named = self.named.lock();
        named.extend(late);
        self.asked.lock().push(keys.len());
        let found = keys.iter().filter(|key| named.contains(*key)).cloned().collect();
        Box::pin(std::future::ready(Ok(found)))
    }
}

/// Makes the file of an object look older.
fn age(dir: &Path, key: &str, by: Duration) -> Result {
    let file = File::open(dir.join("shared").join(key))?;
    Ok(file.set_modified(SystemTime::now() - by)?)
}

#[tokio::test]
async fn only_old_bodies_without_a_row_are_deleted() -> Result {
    let dir = tempfile::tempdir()?;
    let bucket = directory(dir.path())?;
    let bodies = bodies_in(&bucket, None);
    let [named, late, orphan, young] = {
        let mut rows = Vec::new();
        for _ in 0..4 {
            rows.push(write(&bodies, messages(3, 10)).await?.key);
        }
        <[String; 4]>::try_from(rows).expect("four")
    };
    let foreign = format!("chorus/test/agents/{}/x", Uuid::nil());
    bucket.put_new(&foreign, "x".into()).await?;
    for key in [&named, &late, &orphan, &foreign] {
        age(dir.path(), key, MIN_AGE + Duration::from_secs(60))?;
    }
    age(dir.path(), &young, MIN_AGE - Duration::from_secs(60))?;
    let rows =
        Rows { named: Mutex::new([named.clone()].into()), late: Mutex::new(Some(late.clone())), ..Rows::default() };
    let report = sweep(&*bucket, &prefix(), &rows).await?;
    assert_eq!(report, SweepReport { listed: 5, foreign: 1, young: 1, named: 2, deleted: 1 });
    for key in [&named, &late, &young, &foreign] {
        assert!(bucket.head(key).await?.is_some(), "{key}");
    }
    assert_eq!(bucket.head(&orphan).await?, None);
    assert!(bucket.list("chorus/test/probe/", None, 10).await?.is_empty(), "it leaves nothing");
    Ok(())
}

#[tokio::test]
async fn a_writer_names_its_body_long_before_it_is_old() -> Result {
    let dir = tempfile::tempdir()?;
    let bodies = bodies_in(&directory(dir.path())?, None);
    let before = Clock::system().ticks();
    let written = bodies.write(new_body(messages(1, 1))).await?;
    let allowed = written.name_before.since(before);
    assert!(allowed >= NAME_WITHIN && allowed < NAME_WITHIN + Duration::from_secs(60), "{allowed:?}");
    assert!(NAME_WITHIN * 2 < MIN_AGE);
    Ok(())
}

#[tokio::test]
async fn thousands_of_objects_are_swept_a_thousand_at_a_time() -> Result {
    let dir = tempfile::tempdir()?;
    let bucket = directory(dir.path())?;
    let rows = Rows::default();
    for _ in 0..5 {
        let agent = Uuid::new_v4();
        for number in 0..1000 {
            let session = Uuid::from_u128(number % 50);
            let key = BodyKey { agent, session, epoch: 1, write: Uuid::new_v4() };
            let key = key.to_text(&prefix());
            let path = dir.path().join("shared").join(&key);
            std::fs::create_dir_all(path.parent().expect("a directory"))?;
            File::create(&path)?.set_modified(SystemTime::now() - 2 * MIN_AGE)?;
            if number % 10 == 0 {
                rows.named.lock().insert(key);
            }
        }
    }
    let report = sweep(&*bucket, &prefix(), &rows).await?;
    assert_eq!(report, SweepReport { listed: 5_000, named: 500, deleted: 4_500, ..SweepReport::default() });
    assert_eq!(*rows.asked.lock(), vec![1000; 5]);
    let again = sweep(&*bucket, &prefix(), &rows).await?;
    assert_eq!(again, SweepReport { listed: 500, named: 500, ..SweepReport::default() });
    Ok(())
}

#[tokio::test]
async fn a_stale_list_deletes_nothing_that_is_named() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    let mut keys = Vec::new();
    for _ in 0..5 {
        keys.push(write(&node.bodies, messages(1, 1)).await?.key);
    }
    let rows = Rows { named: Mutex::new(keys[..2].iter().cloned().collect()), ..Rows::default() };
    let report = sweep(&*node.bucket, &prefix(), &rows).await?;
    assert_eq!(report, SweepReport { listed: 5, young: 5, ..SweepReport::default() });
    assert!(rows.asked.lock().is_empty(), "nothing is old");
    node.proxy.postpone_dates();
    node.proxy.freeze_lists();
    // Written after the list, and in no row: it is not in the list, so it stays.
    let unlisted = write(&node.bodies, messages(1, 1)).await?.key;
    for _ in 0..2 {
        let report = sweep(&*node.bucket, &prefix(), &rows).await?;
        assert_eq!(report, SweepReport { listed: 5, named: 2, deleted: 3, ..SweepReport::default() });
        for key in keys[..2].iter().chain([&unlisted]) {
            assert!(node.bucket.head(key).await?.is_some(), "{key}");
        }
        for key in &keys[2..] {
            assert_eq!(node.bucket.head(key).await?, None);
        }
    }
    Ok(())
}
