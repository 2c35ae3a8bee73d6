//! Tries what the bucket allows, for `chorusctl doctor`.

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use futures_util::future::join;

use crate::bucket::{Bucket, PutOutcome};
use crate::key::Prefix;

/// A right that the bucket has to grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Write,
    /// A second write to the same key is refused: `If-None-Match`.
    WriteOnce,
    Read,
    ReadRange,
    List,
    Delete,
}

/// The result for one right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeResult {
    pub right: Right,
    /// The reason why it does not work, with a hint.
    pub failure: Option<Error>,
}

impl Right {
    /// Returns what to do if the bucket does not allow it.
    fn hint(self) -> &'static str {
        match self {
            Self::Write => "allow s3:PutObject below the prefix, and check endpoint, region and bucket",
            Self::WriteOnce => {
                "use a server that supports If-None-Match on PUT; otherwise two daemons can overwrite an object"
            }
            Self::Read => "allow s3:GetObject below the prefix",
            Self::ReadRange => "use a server that answers Range requests with status 206",
            Self::List => "allow s3:ListBucket for the prefix",
            Self::Delete => "allow s3:DeleteObject below the prefix",
        }
    }
}

const FIRST: &[u8] = b"chorus probe, first";
const SECOND: &[u8] = b"chorus probe, second";

fn storage(message: &str) -> Error {
    Error::new(chorus_proto::ErrorKind::StorageFailed, message)
}

/// Tries each right on new keys below `PREFIX/probe/`, which are deleted at the end. If nothing can be written, the
/// other rights are not tried.
pub async fn probe(bucket: &dyn Bucket, prefix: &Prefix) -> Vec<ProbeResult> {
    let (key, other) = (prefix.new_probe_key(), prefix.new_probe_key());
    let mut results = Vec::new();
    let mut record = |right: Right, tried: Result<()>| {
        let works = tried.is_ok();
        results.push(ProbeResult { right, failure: tried.err().map(|error| error.hint(right.hint())) });
        works
    };
    // An answer that was lost and a repetition may say that the key exists: it is new, so it is ours.
    let written = bucket.put_new(&key, Bytes::from_static(FIRST)).await.map(drop);
    if !record(Right::Write, written) {
        return results;
    }
    record(Right::WriteOnce, write_twice(bucket, &key, &other).await);
    record(Right::Read, expect_bytes(bucket.get(&key).await.map(Option::unwrap_or_default), FIRST));
    record(Right::ReadRange, expect_bytes(bucket.get_range(&key, 7..12).await, &FIRST[7..12]));
    let listed = bucket.list(&prefix.join("probe/"), None, 1000).await.and_then(|listed| {
        let found = listed.len() == 1000 || listed.iter().any(|object| object.key == key);
        if found { Ok(()) } else { Err(storage("an object that was just written is not in the list")) }
    });
    record(Right::List, listed);
    let deleted = async {
        bucket.delete(&other).await?;
        bucket.delete(&key).await?;
        match bucket.head(&key).await? {
            None => Ok(()),
            Some(_) => Err(storage("an object is still there after it was deleted")),
        }
    };
    record(Right::Delete, deleted.await);
    results
}

/// Writes to a key that exists, and twice at once to one that does not.
async fn write_twice(bucket: &dyn Bucket, key: &str, other: &str) -> Result<()> {
    let ignored = || Err(storage("the server overwrites objects although If-None-Match forbids it"));
    if bucket.put_new(key, Bytes::from_static(SECOND)).await? == PutOutcome::Created {
        // Puts back what the next steps expect; deleting first, if that is allowed.
        let _ = bucket.delete(key).await;
        bucket.put_new(key, Bytes::from_static(FIRST)).await?;
        return ignored();
    }
    let writes =
        join(bucket.put_new(other, Bytes::from_static(FIRST)), bucket.put_new(other, Bytes::from_static(SECOND)));
    match writes.await {
        (Ok(PutOutcome::Created), Ok(PutOutcome::Created)) => ignored(),
        (first, second) => first.and(second).map(drop),
    }
}

fn expect_bytes(read: Result<Bytes>, expected: &[u8]) -> Result<()> {
    if read? == expected { Ok(()) } else { Err(storage("what was read is not what was written")) }
}
