//! The probe of a bucket, for `chorusctl doctor`.

use chorus_session_objects::{ProbeResult, Right, probe};

use chorus_tests::http_fault_proxy::HttpFault;

use super::*;

fn failed(results: &[ProbeResult]) -> Vec<Right> {
    results.iter().filter(|result| result.failure.is_some()).map(|result| result.right).collect()
}

#[tokio::test]
async fn a_bucket_that_allows_everything_passes_and_nothing_is_left() -> Result {
    let dir = tempfile::tempdir()?;
    for bucket in buckets(dir.path())? {
        let results = probe(&*bucket, &prefix()).await;
        assert_eq!(failed(&results), [], "{results:?}");
        assert_eq!(results.len(), 6);
        assert!(bucket.list("chorus/test/", None, 10).await?.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn each_right_that_is_missing_is_named_with_a_hint() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    let denied = HttpFault::Status(403);
    // Requests: PUT, PUT, two PUTs at once; GET, GET of a range, list; two DELETEs, HEAD.
    for (method, faults, rights) in [
        ("PUT", 1, &[Right::Write][..]),
        ("GET", 1, &[Right::Read]),
        ("GET", 2, &[Right::Read, Right::ReadRange]),
        ("GET", 3, &[Right::Read, Right::ReadRange, Right::List]),
        ("DELETE", 1, &[Right::Delete]),
    ] {
        node.proxy.fail(method, &vec![denied; faults]);
        let results = probe(&*node.bucket, &prefix()).await;
        assert_eq!(failed(&results), rights, "{results:?}");
        for failure in results.iter().filter_map(|result| result.failure.as_ref()) {
            assert!(failure.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{failure:?}");
        }
        assert_eq!(node.proxy.pending_faults(), 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_ignores_the_condition_of_a_write_is_found() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    node.proxy.ignore_conditions();
    let results = probe(&*node.bucket, &prefix()).await;
    assert_eq!(failed(&results), [Right::WriteOnce], "{results:?}");
    let failure = results.iter().find_map(|result| result.failure.clone()).expect("the failure");
    assert!(failure.message.contains("If-None-Match") && failure.hint.is_some(), "{failure:?}");
    assert!(node.bucket.list("chorus/test/", None, 10).await?.is_empty());
    Ok(())
}
