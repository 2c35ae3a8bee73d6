//! Tests of batches, failing jobs and closing.

use super::*;
use chorus_base::error::MAYBE_STORED_HINT;
use chorus_proto::ErrorKind;

fn writer() -> DbThread {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch("CREATE TABLE t(n INTEGER PRIMARY KEY)").unwrap();
    DbThread::writer("test", conn, Arc::new(|_| ()), FileGuards::default()).unwrap()
}

fn insert(worker: &DbThread, n: i64) -> impl Future<Output = Result<usize>> + use<> {
    worker.submit(move |conn| Ok(conn.execute("INSERT INTO t VALUES (?1)", [n])?))
}

/// Submits a job that fills a batch of its own and blocks until the gate opens: everything queued meanwhile forms the
/// next batch.
fn held(worker: &DbThread) -> (SyncSender<()>, impl Future<Output = Result<()>> + use<>) {
    let (gate, wait) = mpsc::sync_channel::<()>(1);
    let (begin, begun) = mpsc::sync_channel::<()>(1);
    let held = worker.submit(move |_| {
        let _ = begin.send(());
        let _ = wait.recv();
        Ok(())
    });
    begun.recv().unwrap();
    (gate, held)
}

async fn rows(worker: &DbThread) -> i64 {
    let count = |conn: &Connection| Ok(conn.query_row("SELECT count(*) FROM t", [], |r| r.get::<_, i64>(0))?);
    worker.submit(count).await.unwrap()
}

#[tokio::test]
async fn a_job_that_fails_takes_no_other_with_it() {
    let worker = writer();
    let (gate, held) = held(&worker);
    let (one, again, two) = (insert(&worker, 1), insert(&worker, 1), insert(&worker, 2));
    gate.send(()).unwrap();
    held.await.unwrap();
    assert!(one.await.is_ok());
    assert_eq!(again.await.unwrap_err().kind, ErrorKind::StorageFailed);
    assert!(two.await.is_ok());
    assert_eq!(rows(&worker).await, 2);
}

#[tokio::test]
async fn a_checked_job_that_fails_after_a_change_takes_its_group_with_it() {
    let worker = writer();
    let twice = |conn: &Connection| {
        conn.execute("INSERT INTO t VALUES (7)", [])?;
        Ok(conn.execute("INSERT INTO t VALUES (7)", [])?)
    };
    let refused = |_: &Connection| Err::<(), _>(Error::busy().into());
    let (gate, held) = held(&worker);
    let (one, two, three) = (
        insert(&worker, 1),
        worker.submit_without_savepoint(refused),
        worker.submit_without_savepoint(|conn| Ok(conn.execute("INSERT INTO t VALUES (2)", [])?)),
    );
    gate.send(()).unwrap();
    held.await.unwrap();
    assert!(one.await.is_ok() && three.await.is_ok());
    assert_eq!(two.await.unwrap_err().kind, ErrorKind::Busy);
    let (gate, held) = self::held(&worker);
    let (four, five) = (insert(&worker, 4), worker.submit_without_savepoint(twice));
    let six = insert(&worker, 6);
    gate.send(()).unwrap();
    assert!(held.await.is_ok() && four.await.is_err() && five.await.is_err() && six.await.is_err());
    assert_eq!(rows(&worker).await, 2);
    assert!(insert(&worker, 8).await.is_ok());
}

#[tokio::test]
async fn after_a_failed_sync_of_a_job_alone_nothing_is_acknowledged() {
    let conn = Connection::open_in_memory().unwrap();
    let (told, hears) = mpsc::sync_channel(1);
    let on_fatal: OnFatal = Arc::new(move |failure| _ = told.try_send(failure));
    let worker = DbThread::writer("test", conn, on_fatal, FileGuards::default()).unwrap();
    let fails = |code| {
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        worker.submit_outside_transaction(move |_| Err::<(), _>(error.into()))
    };
    assert!(fails(rusqlite::ffi::SQLITE_CANTOPEN).await.is_err());
    assert!(worker.submit(|_| Ok(())).await.is_ok(), "no sync failed, so nothing is in doubt");
    assert!(fails(rusqlite::ffi::SQLITE_IOERR_FSYNC).await.is_err());
    assert!(worker.submit(|_| Ok(())).await.is_err());
    assert!(worker.submit_outside_transaction(|_| Ok(())).await.is_err());
    assert!(hears.recv().unwrap().fatal);
}

#[tokio::test]
async fn closing_does_what_waits_and_then_refuses() {
    let worker = writer();
    let last = insert(&worker, 1);
    worker.close().await;
    assert!(last.await.is_ok());
    assert_eq!(insert(&worker, 2).await.unwrap_err().kind, ErrorKind::Stopping);
}

#[tokio::test]
async fn a_commit_into_a_file_that_is_gone_is_in_doubt_and_what_comes_after_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t(n INTEGER PRIMARY KEY)").unwrap();
    let files = FileGuards { watch: FileWatch::new(&path, None).unwrap(), commit_counter: CommitCounter::default() };
    let worker = DbThread::writer("test", conn, Arc::new(|_| ()), files).unwrap();
    let moves = move |conn: &Connection| {
        conn.execute("INSERT INTO t VALUES (1)", [])?;
        std::fs::rename(&path, path.with_extension("moved")).map_err(|e| Error::io("moved", &e))?;
        Ok(())
    };
    let failure = worker.submit(moves).await.unwrap_err();
    assert!(failure.fatal && failure.hint.as_deref() == Some(MAYBE_STORED_HINT), "{failure:?}");
    let failure = insert(&worker, 2).await.unwrap_err();
    assert!(failure.fatal && failure.hint.as_deref() != Some(MAYBE_STORED_HINT), "{failure:?}");
}

#[tokio::test]
async fn jobs_that_can_wait_share_a_commit_and_one_that_fails_takes_no_other_with_it() {
    let worker = writer();
    let deferred = |n: i64| worker.submit_deferred(move |conn| Ok(conn.execute("INSERT INTO t VALUES (?1)", [n])?));
    let (one, again, two) = (deferred(1), deferred(1), deferred(2));
    assert!(one.await.is_ok() && again.await.is_err() && two.await.is_ok());
    assert_eq!(rows(&worker).await, 2);
    // A job that rolls back its whole commit shows what else is in it. If the machine stalls in between, each job has a
    // commit of its own, so try again.
    let undo = |conn: &Connection| {
        Err::<(), _>(conn.execute_batch("ROLLBACK").map_or_else(StoreError::from, |()| Error::busy().into()))
    };
    let shared = async |n| {
        let (first, second) = (deferred(n), worker.submit_deferred(undo));
        assert!(second.await.is_err());
        first.await.is_err()
    };
    let mut tries = 10..110;
    while !shared(tries.next().expect("a commit for both")).await {}
    // A job that cannot wait ends the wait.
    let (first, second) = (deferred(1000), insert(&worker, 1001));
    assert!(second.await.is_ok() && first.await.is_ok());
}

#[tokio::test]
async fn a_job_has_its_result_before_its_event_is_published() {
    let worker = writer();
    let (has_result, wait) = mpsc::sync_channel::<()>(1);
    let (publish, published) = mpsc::sync_channel::<bool>(1);
    let job = |_: &Connection| Ok((1, "news"));
    let result = worker.submit_and_publish(job, move |news| {
        let waited = wait.recv_timeout(Duration::from_secs(20));
        let _ = publish.send(waited.is_ok() && news == "news");
    });
    assert_eq!(result.await.unwrap(), 1);
    has_result.send(()).unwrap();
    assert!(published.recv().unwrap());
}
