//! The object with which a cluster marks its bucket: no node uses another bucket by mistake, and no two clusters share one, where
//! each would delete the objects of the other.

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use uuid::Uuid;

use crate::bucket::{Bucket, PutOutcome};
use crate::key::Prefix;

/// Name of the object below the prefix. Its content is the id of the cluster.
const NAME: &str = "cluster-id";

/// Checks that the bucket is that of the cluster `id`; marks it if it has no mark and `is_marked` is false.
///
/// # Errors
/// `invalid_config` if the mark is that of another cluster, or missing while `is_marked`; `denied`, `storage_failed`,
/// `storage_unavailable`.
pub async fn check_or_mark(bucket: &dyn Bucket, prefix: &Prefix, id: Uuid, is_marked: bool) -> Result<()> {
    let key = prefix.join(NAME);
    match bucket.get(&key).await? {
        Some(mark) => return compare(&key, &mark, id),
        None if is_marked => {
            let what =
                format!("[store.sessions] names another bucket than that of the other nodes: it has no object {key}");
            let hint = format!(
                "use the same one on all nodes; if its objects were copied here, store {key} with {id} as well"
            );
            return Err(Error::new(ErrorKind::InvalidConfig, what).hint(hint));
        }
        None => {}
    }
    match bucket.put_new(&key, Bytes::from(format!("{id}\n"))).await? {
        PutOutcome::Created => Ok(()),
        // Another node was faster, or an attempt before.
        PutOutcome::Exists => compare(&key, &bucket.get(&key).await?.unwrap_or_default(), id),
    }
}

/// Checks that the bucket is not that of another cluster than `id`, which may not exist yet. Writes nothing.
///
/// # Errors
/// As [`check_or_mark`].
pub(crate) async fn check_mark(bucket: &dyn Bucket, prefix: &Prefix, id: Option<Uuid>) -> Result<()> {
    let key = prefix.join(NAME);
    match (bucket.get(&key).await?, id) {
        (None, _) => Ok(()),
        (Some(mark), Some(id)) => compare(&key, &mark, id),
        (Some(_), None) => {
            let hint = format!(
                "use another bucket or prefix for each cluster; if no cluster uses this one any more: delete the object {key}"
            );
            Err(Error::new(ErrorKind::InvalidConfig, belongs_to_another(&key)).hint(hint))
        }
    }
}

fn belongs_to_another(key: &str) -> String {
    format!("the bucket of [store.sessions] belongs to another cluster: its object {key} has another id")
}

fn compare(key: &str, mark: &[u8], id: Uuid) -> Result<()> {
    let found = str::from_utf8(mark).ok().and_then(|text| Uuid::try_parse(text.trim()).ok());
    if found == Some(id) {
        return Ok(());
    }
    let hint = format!(
        "use another bucket or prefix for each cluster; if this database was restored, copied or created again, and no other cluster uses the bucket: \
         store {key} with {id}"
    );
    Err(Error::new(ErrorKind::InvalidConfig, belongs_to_another(key)).hint(hint))
}
