//! Session files as copies of bodies that are elsewhere, where other daemons read them, too. The row of a session has its
//! header and names its body; the file is made of both. Without such a store, the files are the only ones.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::{BodyRow, SessionRow};
use chorus_session::stored_message::StoredMessage;
use futures_util::future::BoxFuture;

use super::Store;
use super::session_files::path_of;
use super::session_form::stamp_of;

/// Bytes of a body from which a session that is not on this machine is read in pages, and not copied as a whole.
const MIN_PAGED_BYTES: u64 = 1 << 20;

/// The contents of the bucket, compared with the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BucketComparison {
    pub sessions: BodyComparison,
    /// The bundles of workspaces: `missing` has ids of agents.
    pub workspaces: BodyComparison,
}

/// The rows and the bodies that do not fit each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodyComparison {
    /// Rows that were compared.
    pub compared: u64,
    /// Ids of sessions whose bodies are missing, the first 100.
    pub missing: Vec<String>,
    /// The number of all of them.
    pub missing_count: u64,
    /// Bodies that no row names, without those of the last ten minutes.
    pub unnamed: u64,
    /// False if the time was over before the end.
    pub complete: bool,
}

/// The store of bodies that several daemons share, and what it copies to this machine. It writes the body of each row that
/// is inserted or replaced: it stands in front of the table of sessions.
pub trait SharedBodies: Debug + Send + Sync {
    /// Makes sure that the file `path` has the session of `row`, which has a body. Returns the row with the stamp of the
    /// file.
    ///
    /// # Errors
    /// `session_not_found` if the session was deleted, `corrupt_session`, `denied`, `storage_failed`.
    fn refresh(&self, row: SessionRow, path: PathBuf) -> BoxFuture<'_, Result<SessionRow>>;

    /// Reads up to `count` messages from number `first` on, counted from 0; fewer at the end.
    ///
    /// # Errors
    /// As [`SharedBodies::refresh`].
    fn page(&self, body: BodyRow, first: u64, count: u64) -> BoxFuture<'_, Result<Vec<StoredMessage>>>;

    /// Tries each right that the store of bodies has to grant. Returns what was tried, such as `writing`, and why it failed.
    fn probe(&self) -> BoxFuture<'_, Vec<(&'static str, Option<Error>)>>;

    /// Compares all rows with all bodies, for this time at most.
    ///
    /// # Errors
    /// `denied`, `storage_failed`.
    fn compare(&self, limit: Duration) -> BoxFuture<'_, Result<BucketComparison>>;

    /// Deletes bodies that no row names, and copies beyond their limit. Does not end.
    fn run_upkeep(&self) -> BoxFuture<'_, ()>;
}

/// Returns true if the file was made from the row, or the row from the file. If another node has written the row, its stamp is
/// that of a file there.
#[must_use]
pub fn is_current_copy(row: &SessionRow, path: &Path) -> bool {
    stamp_of(path).is_some_and(|stamp| stamp == row.file_stamp)
}

impl Store {
    /// Returns the path of a session's file in the directory of its agent, and copies it there first if its body is
    /// elsewhere.
    ///
    /// # Errors
    /// As [`SharedBodies::refresh`].
    pub async fn local_file(&self, row: &SessionRow, agent_dir: &Path) -> Result<PathBuf> {
        if self.is_shared(row) {
            self.with_local_file(row.clone(), agent_dir).await?;
        }
        Ok(path_of(agent_dir, &row.header.session_id))
    }

    /// As [`Store::local_file`], for callers that compare the stamp of the file. Returns the row with it.
    ///
    /// # Errors
    /// As [`SharedBodies::refresh`].
    pub async fn with_local_file(&self, row: SessionRow, agent_dir: &Path) -> Result<SessionRow> {
        match &self.bodies {
            Some(bodies) if row.body.is_some() => {
                let path = path_of(agent_dir, &row.header.session_id);
                bodies.refresh(row, path).await
            }
            _ => Ok(row),
        }
    }

    /// Returns true if the body of the session is elsewhere, and its file on this machine can be missing.
    #[must_use]
    pub fn is_shared(&self, row: &SessionRow) -> bool {
        self.bodies.is_some() && row.body.is_some()
    }

    /// Returns true if the session has no file on this machine that is up to date.
    #[must_use]
    pub fn is_elsewhere(&self, row: &SessionRow, agent_dir: &Path) -> bool {
        self.is_shared(row) && !is_current_copy(row, &path_of(agent_dir, &row.header.session_id))
    }

    /// Returns the body of a session that is too large to be copied for the sake of a page.
    #[must_use]
    pub fn body_to_page(&self, row: &SessionRow, agent_dir: &Path) -> Option<BodyRow> {
        let large = row.body.as_ref().filter(|body| body.body_bytes >= MIN_PAGED_BYTES)?;
        self.is_elsewhere(row, agent_dir).then(|| large.clone())
    }
}
