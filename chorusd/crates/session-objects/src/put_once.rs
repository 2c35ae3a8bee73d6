//! Writes an object under a key that no other write uses.

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;

use crate::bucket::{Bucket, PutOutcome, missing};
use crate::digest::sha256;

/// Writes an object that has a new key. If it is not certain that this call wrote it, it is read: the same bytes are ours.
///
/// # Errors
/// `denied`, `storage_failed`, `storage_unavailable`, `conflict` if the key has other bytes.
pub async fn put_once(bucket: &dyn Bucket, key: &str, object: Bytes) -> Result<()> {
    let uncertain = match bucket.put_new(key, object.clone()).await {
        Ok(PutOutcome::Created) => return Ok(()),
        Ok(PutOutcome::Exists) => None,
        Err(error) if error.kind == ErrorKind::Denied => return Err(error),
        Err(error) => Some(error),
    };
    let stored = bucket.get(key).await;
    match (uncertain, stored) {
        (_, Ok(Some(stored))) if sha256(&stored) == sha256(&object) => Ok(()),
        (_, Ok(Some(_))) => Err(Error::new(ErrorKind::Conflict, format!("another process wrote the object {key}"))),
        (Some(error), _) | (None, Err(error)) => Err(error),
        (None, Ok(None)) => Err(missing(key)),
    }
}
