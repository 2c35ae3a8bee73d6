//! A bucket that says nothing: connections stay open, and no answer comes.

use std::time::{Duration, Instant};

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::http_fault_proxy::{HttpFault, HttpFaultProxy};
use chorus_tests::s3_server::TestBucket;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{Cluster, try_append};

/// Time in which a request is answered whose first connection to the bucket carries nothing, with room for a busy machine.
const BOUND: Duration = Duration::from_secs(20);

/// A save keeps the other requests for its agent waiting, so that it may not wait for long.
#[tokio::test(flavor = "multi_thread")]
async fn a_save_and_what_waits_for_it_are_answered_within_seconds() {
    let Some(cluster) = Cluster::create() else { return };
    let Some(bucket) = TestBucket::create() else { return };
    let proxy = HttpFaultProxy::start(bucket.port).await.expect("a proxy");
    let home = cluster.node_on_bucket("a", &bucket.name, &proxy.endpoint());
    let a = Daemon::start(&home);
    let (mut client, mut other) = (a.client(), a.client());
    client.init("x");
    client.append("x", "one");
    proxy.fail("PUT", &[HttpFault::Silence]);
    let begun = Instant::now();
    let saving = std::thread::spawn(move || {
        client.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
        client.save("x", "kept");
        client
    });
    other.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    let appended = chorus_runtime::spawn_blocking(move || {
        wait_until("the save to reach the bucket", DEADLINE, || (proxy.pending_faults() == 0).then_some(()));
        let total = try_append(&mut other, "x", "two").expect("an append");
        (total, begun.elapsed())
    });
    let (total, waited) = appended.await.expect("a thread");
    let mut client = saving.join().expect("a save");
    assert!(waited < BOUND && begun.elapsed() < BOUND, "append {waited:?}, save {:?}", begun.elapsed());
    println!("the append waited {waited:?}, the save took {:?}", begun.elapsed());
    assert_eq!((total, client.history("x").len()), (2, 1));
    assert_eq!(client.message_texts("x"), ["one", "two"]);
}
