//! Deletes bodies that no row names: what a crash between the object and its row left, and what a growth replaced.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use chorus_base::error::Result;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use crate::bucket::{Bucket, Listed, missing};
use crate::bundle_key::BundleKey;
use crate::key::{BodyKey, Prefix};

/// Age from which a body that no row names is deleted, by the clock of the server.
pub const MIN_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Objects that are held in memory at a time.
const PAGE: usize = 1000;

/// The rows.
pub trait NamedBodies: Send + Sync {
    /// Returns those of `keys`, up to 1,000, that a row names. It must see every row that was committed before the call.
    ///
    /// # Errors
    /// Any error ends the sweep; what it asked about is not deleted.
    fn named<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<HashSet<String>>>;
}

/// The numbers of objects that a sweep saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    pub listed: u64,
    /// Those that are not bodies, which stay.
    pub foreign: u64,
    /// Those that may still get a row.
    pub young: u64,
    pub named: u64,
    pub deleted: u64,
}

/// Deletes bodies that are older than [`MIN_AGE`] and that no row names. The rows are asked about objects after these were
/// listed: a row that was committed before the list was made is then seen, and one that comes later names a young object.
///
/// # Errors
/// `denied`, `storage_failed`, `storage_unavailable`, and those of `rows`. What was deleted by then stays so.
pub async fn sweep(bucket: &dyn Bucket, prefix: &Prefix, rows: &dyn NamedBodies) -> Result<SweepReport> {
    let is_body = |key: &str| BodyKey::parse(prefix, key).is_some();
    sweep_folder(bucket, prefix, &prefix.bodies(), &is_body, rows).await
}

/// As [`sweep`], for the bundles of workspaces.
///
/// # Errors
/// As [`sweep`].
pub async fn sweep_bundles(bucket: &dyn Bucket, prefix: &Prefix, rows: &dyn NamedBodies) -> Result<SweepReport> {
    let is_bundle = |key: &str| BundleKey::parse(prefix, key).is_some();
    sweep_folder(bucket, prefix, &prefix.bundles(), &is_bundle, rows).await
}

async fn sweep_folder(
    bucket: &dyn Bucket,
    prefix: &Prefix,
    folder: &str,
    is_ours: &(dyn Fn(&str) -> bool + Sync),
    rows: &dyn NamedBodies,
) -> Result<SweepReport> {
    let oldest_young = server_time(bucket, prefix).await? - SignedDuration::try_from(MIN_AGE).unwrap_or_default();
    let (mut report, mut after) = (SweepReport::default(), None::<String>);
    loop {
        let page = bucket.list(folder, after.as_deref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(report) };
        after = Some(last.key.clone());
        sweep_page(bucket, is_ours, rows, page, oldest_young, &mut report).await?;
    }
}

async fn sweep_page(
    bucket: &dyn Bucket,
    is_ours: &(dyn Fn(&str) -> bool + Sync),
    rows: &dyn NamedBodies,
    page: Vec<Listed>,
    oldest_young: Timestamp,
    report: &mut SweepReport,
) -> Result<()> {
    report.listed += page.len() as u64;
    let mut old = Vec::new();
    for object in page {
        if !is_ours(&object.key) {
            report.foreign += 1;
        } else if object.modified >= oldest_young {
            report.young += 1;
        } else {
            old.push(object.key);
        }
    }
    if old.is_empty() {
        return Ok(());
    }
    let named = rows.named(&old).await?;
    for key in old {
        if named.contains(&key) {
            report.named += 1;
        } else {
            bucket.delete(&key).await?;
            report.deleted += 1;
        }
    }
    Ok(())
}

/// Returns the time by the clock that also stamps the objects: that of an object that was just written.
pub(crate) async fn server_time(bucket: &dyn Bucket, prefix: &Prefix) -> Result<Timestamp> {
    let key = prefix.new_probe_key();
    bucket.put_new(&key, Bytes::from_static(b"time")).await?;
    let written = bucket.head(&key).await;
    let _ = bucket.delete(&key).await;
    Ok(written?.ok_or_else(|| missing(&key))?.modified)
}
