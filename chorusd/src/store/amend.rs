//! What may change of a saved session: its description, summary, tags and the like, never its messages.

use std::path::PathBuf;

use chorus_proto::{ErrorKind, SessionHeader};
use uuid::Uuid;

use super::catalog::SessionRow;
use super::{Store, session_files};
use crate::failure::{Failure, Result};

impl Store {
    /// Changes the header of a session, in its file and then in its row; the messages keep their bytes and so their
    /// hash. One session is amended at a time. `change` is applied to the file's header and to the row's.
    ///
    /// # Errors
    /// `session_not_found`, `corrupt_session`, `disk_full`, `storage_failed`; the session is as before then.
    pub async fn amend(
        &self,
        id: Uuid,
        agent_dir: PathBuf,
        change: impl Fn(&mut SessionHeader) + Send + 'static,
    ) -> Result<SessionRow> {
        let _one_at_a_time = self.files.amending.lock().await;
        let row = self.catalog.session(id).await?.ok_or_else(gone)?;
        self.amend_row(row, agent_dir, change).await
    }

    /// As [`Store::amend`], but only where `may` says so of the row as it is now, and the file is the one that the catalog
    /// knows: what somebody edited meanwhile is left alone. `None`: it was.
    ///
    /// # Errors
    /// As [`Store::amend`].
    pub async fn amend_if(
        &self,
        id: Uuid,
        agent_dir: PathBuf,
        may: impl FnOnce(&SessionHeader) -> bool,
        change: impl Fn(&mut SessionHeader) + Send + 'static,
    ) -> Result<Option<SessionRow>> {
        let _one_at_a_time = self.files.amending.lock().await;
        let row = self.catalog.session(id).await?.ok_or_else(gone)?;
        let path = session_files::path_of(&agent_dir, &row.header.session_id);
        let known = path.metadata().is_ok_and(|metadata| session_files::stamp(&metadata) == row.file_stamp);
        if !known || !may(&row.header) {
            return Ok(None);
        }
        self.amend_row(row, agent_dir, change).await.map(Some)
    }

    async fn amend_row(
        &self,
        mut row: SessionRow,
        agent_dir: PathBuf,
        change: impl Fn(&mut SessionHeader) + Send + 'static,
    ) -> Result<SessionRow> {
        let before = row.header.clone();
        change(&mut row.header);
        if row.header == before {
            return Ok(row);
        }
        let path = session_files::path_of(&agent_dir, &row.header.session_id);
        let amended = blocking(move || session_files::amend(&path, change)).await?;
        row.file_stamp.clone_from(&amended.stamp);
        // The file may know of a change that a crash kept from the row. Whose the session is and how it is called the row says.
        let SessionHeader { id, session_id, agent_id, .. } = row.header;
        row.header = SessionHeader { id, session_id, agent_id, ..amended.header.clone() };
        row.corrupt = None;
        if let Err(failure) = self.catalog.amend_session(row.clone()).await {
            // Another stamp than the row's: where this fails too, the next start reads the file anew.
            if let Err(undo) = blocking(move || amended.undo()).await {
                tracing::error!(session = %id, failure = %undo, "a failed change of a session could not be undone");
            }
            return Err(failure);
        }
        Ok(row)
    }
}

fn gone() -> Failure {
    Failure::new(ErrorKind::SessionNotFound, "the session was deleted in the meantime")
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Failure::internal(e.to_string()))?
}
