//! The bodies of sessions as immutable objects in a bucket or a shared directory. See docs/design/session-objects.md.
//!
//! A body is written once, under a key that nobody else uses, before the row that names it; what changes later, such as
//! title and tags, is in the row. Invariant: nothing that a row names is changed or deleted here, and what is read is what
//! was written. No catalog and no decision about who may save are in this crate.

#![warn(unreachable_pub)]

mod block_index;
mod bodies;
mod bucket;
mod bucket_mark;
mod bundle_key;
mod cache;
mod compare;
mod digest;
mod directory;
mod http_client;
mod key;
mod object_bodies;
mod probe;
mod put_once;
mod retry;
mod s3;
mod settings;
mod sweep;

pub use bodies::{BodyFuture, BodyRow, FoundBody, NewBody, SessionBodies, WrittenBody};
pub use bucket::{Bucket, BucketFuture, Listed, PutOutcome};
pub use bucket_mark::check_or_mark;
pub use bundle_key::BundleKey;
pub use cache::BodyCache;
pub use compare::{Comparison, ListedBodies, compare_bodies, compare_bundles};
pub use directory::DirectoryBucket;
pub use key::{BodyKey, Prefix};
pub use object_bodies::{NAME_WITHIN, ObjectBodies};
pub use probe::{ProbeResult, Right, probe};
pub use put_once::put_once;
pub use retry::RetryPolicy;
pub use s3::S3Bucket;
pub use settings::{S3Key, S3Settings};
pub use sweep::{MIN_AGE, NamedBodies, SweepReport, sweep, sweep_bundles};
