//! Compares the objects in the bucket with the rows that name them: after a restore of the database to an earlier moment, some
//! rows may name bodies that were deleted since, and bodies that were written since have no row.

use std::collections::VecDeque;
use std::time::Duration;

use chorus_base::error::Result;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use crate::bucket::{Bucket, Listed};
use crate::bundle_key::BundleKey;
use crate::key::{BodyKey, Prefix};
use crate::sweep::{NamedBodies, server_time};

/// Keys and objects that are held in memory at a time.
const PAGE: usize = 1000;

/// Missing bodies that are named.
const MAX_MISSING: usize = 100;

/// Age from which a body without a row is counted: a younger one is that of a save that runs.
const UNNAMED_AGE: Duration = Duration::from_secs(10 * 60);

/// All rows, in the order of the keys that they name.
pub trait ListedBodies: NamedBodies {
    /// Returns up to `limit` keys that rows name, those after `after`, in the order of their bytes.
    ///
    /// # Errors
    /// Any error ends the comparison.
    fn page(&self, after: Option<String>, limit: usize) -> BoxFuture<'_, Result<Vec<String>>>;
}

/// The result of [`compare_bodies`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Rows that were compared.
    pub compared: u64,
    /// Keys that rows name and that are not in the bucket, the first 100.
    pub missing: Vec<String>,
    /// All of those.
    pub missing_count: u64,
    /// Bodies older than ten minutes that no row names. A sweep deletes them a day after they were written.
    pub unnamed: u64,
    /// True if it came to the end.
    pub complete: bool,
}

/// Compares all rows with all bodies, into `found`, which also has the result so far if this is dropped before it ends.
///
/// # Errors
/// `denied`, `storage_failed`, `storage_unavailable`, and those of `rows`.
pub async fn compare_bodies(
    bucket: &dyn Bucket,
    prefix: &Prefix,
    rows: &dyn ListedBodies,
    found: &mut Comparison,
) -> Result<()> {
    let is_body = |key: &str| BodyKey::parse(prefix, key).is_some();
    compare_folder(bucket, prefix, &prefix.bodies(), &is_body, rows, found).await
}

/// As [`compare_bodies`], for the bundles of workspaces.
///
/// # Errors
/// As [`compare_bodies`].
pub async fn compare_bundles(
    bucket: &dyn Bucket,
    prefix: &Prefix,
    rows: &dyn ListedBodies,
    found: &mut Comparison,
) -> Result<()> {
    let is_bundle = |key: &str| BundleKey::parse(prefix, key).is_some();
    compare_folder(bucket, prefix, &prefix.bundles(), &is_bundle, rows, found).await
}

async fn compare_folder(
    bucket: &dyn Bucket,
    prefix: &Prefix,
    folder: &str,
    is_ours: &(dyn Fn(&str) -> bool + Sync),
    rows: &dyn ListedBodies,
    found: &mut Comparison,
) -> Result<()> {
    let old = server_time(bucket, prefix).await? - SignedDuration::try_from(UNNAMED_AGE).unwrap_or_default();
    let mut objects = Objects { bucket, folder, after: None, page: VecDeque::new(), ended: false };
    let mut after = None;
    loop {
        // The rows first: the body of each was written before it.
        let keys = rows.page(after, PAGE).await?;
        let (mut missing, mut unnamed) = (Vec::new(), Vec::new());
        for key in &keys {
            while let Some(object) = objects.next_if(|object| object.key < *key).await? {
                note_unnamed(is_ours, rows, object, old, &mut unnamed, found).await?;
            }
            if objects.next_if(|object| object.key == *key).await?.is_none() {
                missing.push(key.clone());
            }
        }
        if keys.is_empty() {
            while let Some(object) = objects.next_if(|_| true).await? {
                note_unnamed(is_ours, rows, object, old, &mut unnamed, found).await?;
            }
        }
        count_unnamed(rows, &mut unnamed, found).await?;
        note_missing(bucket, rows, missing, found).await?;
        found.compared += keys.len() as u64;
        match keys.last() {
            Some(last) => after = Some(last.clone()),
            None => break,
        }
    }
    found.complete = true;
    Ok(())
}

/// The objects in the order of their keys.
struct Objects<'a> {
    bucket: &'a dyn Bucket,
    folder: &'a str,
    after: Option<String>,
    page: VecDeque<Listed>,
    ended: bool,
}

impl Objects<'_> {
    /// Takes the next object if it is wanted.
    async fn next_if(&mut self, is_wanted: impl Fn(&Listed) -> bool) -> Result<Option<Listed>> {
        if self.page.is_empty() && !self.ended {
            self.page = self.bucket.list(self.folder, self.after.as_deref(), PAGE).await?.into();
            match self.page.back() {
                Some(last) => self.after = Some(last.key.clone()),
                None => self.ended = true,
            }
        }
        Ok(match self.page.front() {
            Some(next) if is_wanted(next) => self.page.pop_front(),
            _ => None,
        })
    }
}

async fn note_unnamed(
    is_ours: &(dyn Fn(&str) -> bool + Sync),
    rows: &dyn ListedBodies,
    object: Listed,
    old: Timestamp,
    unnamed: &mut Vec<String>,
    found: &mut Comparison,
) -> Result<()> {
    if object.modified < old && is_ours(&object.key) {
        unnamed.push(object.key);
    }
    if unnamed.len() == PAGE { count_unnamed(rows, unnamed, found).await } else { Ok(()) }
}

/// Counts those that no row names by now.
async fn count_unnamed(rows: &dyn ListedBodies, unnamed: &mut Vec<String>, found: &mut Comparison) -> Result<()> {
    if !unnamed.is_empty() {
        let named = rows.named(unnamed).await?;
        found.unnamed += unnamed.drain(..).filter(|key| !named.contains(key)).count() as u64;
    }
    Ok(())
}

/// Notes those that a row still names: it may have been deleted, or may name a later body. A list may be stale, so the first are
/// asked for one by one.
async fn note_missing(
    bucket: &dyn Bucket,
    rows: &dyn ListedBodies,
    missing: Vec<String>,
    found: &mut Comparison,
) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let named = rows.named(&missing).await?;
    for key in missing.into_iter().filter(|key| named.contains(key)) {
        let is_named = found.missing.len() < MAX_MISSING;
        if is_named && bucket.head(&key).await?.is_some() {
            continue;
        }
        found.missing_count += 1;
        if is_named {
            found.missing.push(key);
        }
    }
    Ok(())
}
