//! Updates of a saved session's header: description, summary, tags and the like. Its messages stay.

use std::path::PathBuf;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_proto::{ErrorKind, SessionHeader};
use chorus_runtime::run_blocking;
use uuid::Uuid;

use super::{Store, session_files, session_form};

impl Store {
    /// Updates the header of a session, in its file and then in its row. The messages keep their bytes and so their
    /// hash. Updates run one at a time. `change` is applied to the header of the file and to that of the row.
    ///
    /// # Errors
    /// `session_not_found`, `corrupt_session`, `disk_full`, `storage_failed`; the session is then unchanged.
    pub async fn update_session_header(
        &self,
        id: Uuid,
        agent_dir: PathBuf,
        change: impl Fn(&mut SessionHeader) + Send + 'static,
    ) -> Result<SessionRow> {
        let _one_at_a_time = self.files.change_lock.lock().await;
        let row = self.catalog.sessions.get(id).await?.ok_or_else(session_not_found)?;
        self.update_row(row, agent_dir, change).await
    }

    /// As [`Store::update_session_header`], but only if `may` accepts the header in the row and the file is still the
    /// one that the catalog knows, so that edits by other programs are kept. Returns `None` if the session was left
    /// alone.
    pub async fn update_session_header_if(
        &self,
        id: Uuid,
        agent_dir: PathBuf,
        may: impl FnOnce(&SessionHeader) -> bool,
        change: impl Fn(&mut SessionHeader) + Send + 'static,
    ) -> Result<Option<SessionRow>> {
        let _one_at_a_time = self.files.change_lock.lock().await;
        let row = self.catalog.sessions.get(id).await?.ok_or_else(session_not_found)?;
        let path = session_files::path_of(&agent_dir, &row.header.session_id);
        let known = session_form::stamp_of(&path).is_some_and(|stamp| stamp == row.file_stamp)
            || self.is_elsewhere(&row, &agent_dir);
        if !known || !may(&row.header) {
            return Ok(None);
        }
        self.update_row(row, agent_dir, change).await.map(Some)
    }

    pub(crate) async fn update_row(
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
        if self.is_elsewhere(&row, &agent_dir) {
            // Whoever reads it next makes the file from the row.
            row.file_stamp.clear();
            self.catalog.sessions.update(row.clone()).await?;
            return Ok(row);
        }
        let changed = row.header.clone();
        row =
            SessionRow { header: changed, ..self.make_plain(SessionRow { header: before, ..row }, &agent_dir).await? };
        let path = session_files::path_of(&agent_dir, &row.header.session_id);
        let amended = run_blocking(move || session_files::update_header(&path, change)).await?;
        row.file_stamp.clone_from(&amended.stamp);
        // The file may contain a change that a crash kept from the row. The agent and the name of the session come from
        // the row.
        let SessionHeader { id, session_id, agent_id, .. } = row.header;
        row.header = SessionHeader { id, session_id, agent_id, ..amended.header.clone() };
        row.corrupt = None;
        if let Err(failure) = self.catalog.sessions.update(row.clone()).await {
            // The file's stamp now differs from the row's: if undoing fails as well, the next start reads the file
            // again.
            if let Err(undo) = run_blocking(move || amended.undo()).await {
                tracing::error!(session = %id, failure = %undo, "cannot undo a failed session update");
            }
            return Err(failure);
        }
        Ok(row)
    }
}

fn session_not_found() -> Error {
    Error::new(ErrorKind::SessionNotFound, "the session was deleted")
}
