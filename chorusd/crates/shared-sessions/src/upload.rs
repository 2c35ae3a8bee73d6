//! Writes the bodies of sessions from their files.

use std::path::PathBuf;

use chorus_base::error::{Error, Result};
use chorus_catalog::{BodyRow, SessionRow};
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use chorus_session_objects::NewBody;
use chorus_store::session_files;
use uuid::Uuid;

use crate::SharedSessions;
use crate::body_rows::{to_catalog, to_objects};

impl SharedSessions {
    /// Writes the messages in the file of a session as a new body, and names it in the row, which has to be committed then.
    /// A file that cannot be read as a session has no body.
    ///
    /// # Errors
    /// `busy` if this daemon does not own the agent; those of the file and of the bucket.
    pub(crate) async fn write_body(&self, row: &mut SessionRow) -> Result<()> {
        row.body = None;
        if row.corrupt.is_some() {
            return Ok(());
        }
        let (agent, session) = (row.header.agent_id, row.header.id);
        let owned = self.ownership.epoch(agent).and_then(|epoch| u64::try_from(epoch).ok());
        let epoch = owned.ok_or_else(|| {
            let message = format!("another node has taken over {}", row.header.agent_name);
            Error::new(ErrorKind::Busy, message).hint("try again")
        })?;
        let path = self.file_of(row).await?;
        let file = run_blocking(move || session_files::read(&path)).await?.file.map_err(|e| {
            let message = format!("the file of {} {e}", row.header.session_id);
            Error::new(ErrorKind::CorruptSession, message)
        })?;
        let written = self
            .bodies
            .write(NewBody { agent, session, epoch, messages: file.messages })
            .await
            .map_err(|failure| explain(&row.header.session_id, failure))?;
        if self.clock.ticks() > written.name_before {
            // The sweep could delete it before the row is there.
            let message = format!("storing {} took too long", row.header.session_id);
            return Err(Error::new(ErrorKind::StorageFailed, message).hint("try again"));
        }
        row.body = Some(to_catalog(written.row));
        Ok(())
    }

    /// Deletes a body that no row names any more, in the background: if that fails, a sweep does it.
    pub(crate) fn delete_body(&self, body: BodyRow) {
        let bodies = self.bodies.clone();
        chorus_runtime::spawn(async move {
            let key = body.key.clone();
            if let Err(failure) = bodies.delete(to_objects(body)).await {
                tracing::warn!(key, %failure, "cannot delete messages that no session has; a sweep deletes them");
            }
        });
    }

    /// Returns the path of the file of a session.
    pub(crate) async fn file_of(&self, row: &SessionRow) -> Result<PathBuf> {
        Ok(session_files::path_of(&self.agent_dir(row.header.agent_id).await?, &row.header.session_id))
    }

    async fn agent_dir(&self, agent: Uuid) -> Result<PathBuf> {
        let found = self.agents.list_by_id(vec![agent]).await?.pop();
        Ok(self.home.join(found.ok_or_else(Error::agent_destroyed)?.dir))
    }
}

/// Returns the error of the bucket as that of a save.
fn explain(session: &str, failure: Error) -> Error {
    let Error { kind, message, hint, .. } = failure;
    let how = hint.map_or_else(String::new, |hint| format!("{hint}; "));
    Error::new(kind, format!("the messages of {session} cannot be stored: {message}"))
        .hint(format!("{how}nothing is lost, a later save stores them"))
}
