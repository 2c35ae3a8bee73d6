//! A place for objects: a bucket of S3 or a shared directory.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// The result of a call.
pub type BucketFuture<'a, T> = BoxFuture<'a, Result<T>>;

/// A place for objects. Keys are segments separated by `/`.
pub trait Bucket: Debug + Send + Sync {
    /// Writes an object if none has this key.
    ///
    /// # Errors
    /// `denied` if nothing was written; after any other error it may have been.
    fn put_new<'a>(&'a self, key: &'a str, bytes: Bytes) -> BucketFuture<'a, PutOutcome>;

    /// Reads a whole object; `None` if there is none.
    ///
    /// # Errors
    /// `denied`, `storage_failed`, `storage_unavailable`.
    fn get<'a>(&'a self, key: &'a str) -> BucketFuture<'a, Option<Bytes>>;

    /// Reads a part of an object, in bytes.
    ///
    /// # Errors
    /// `session_not_found`, `denied`, `storage_failed`, `storage_unavailable`.
    fn get_range<'a>(&'a self, key: &'a str, range: Range<u64>) -> BucketFuture<'a, Bytes>;

    /// Reads size and time of an object; `None` if there is none.
    ///
    /// # Errors
    /// `denied`, `storage_failed`, `storage_unavailable`.
    fn head<'a>(&'a self, key: &'a str) -> BucketFuture<'a, Option<Listed>>;

    /// Lists up to `limit` objects whose keys begin with `prefix`, which ends with `/`, and come after `after`, in the order
    /// of keys. The list may be stale.
    ///
    /// # Errors
    /// `denied`, `storage_failed`, `storage_unavailable`.
    fn list<'a>(&'a self, prefix: &'a str, after: Option<&'a str>, limit: usize) -> BucketFuture<'a, Vec<Listed>>;

    /// Deletes an object, which may be gone already.
    ///
    /// # Errors
    /// `denied`, `storage_failed`, `storage_unavailable`.
    fn delete<'a>(&'a self, key: &'a str) -> BucketFuture<'a, ()>;
}

/// The result of [`Bucket::put_new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    Created,
    /// An object has this key already; perhaps an earlier attempt wrote it, whose answer was lost.
    Exists,
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub key: String,
    pub bytes: u64,
    /// The time of its last write, by the clock of the server.
    pub modified: Timestamp,
}

/// The error that an object is gone.
pub(crate) fn missing(key: &str) -> Error {
    Error::new(ErrorKind::SessionNotFound, format!("the object {key} does not exist"))
        .hint("if the bucket keeps versions, restore the newest one of it; chorusctl doctor lists what is missing")
}
