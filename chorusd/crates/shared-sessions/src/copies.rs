//! Makes the files of sessions from their rows and bodies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::create_private;
use chorus_catalog::{BodyRow, SessionRow};
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use chorus_session::stored_message::StoredMessage;
use chorus_session_objects::{Comparison, Right};
use chorus_store::{BodyComparison, SharedBodies, is_current_copy, session_files};
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use crate::body_rows::to_objects;
use crate::{FETCH_LOCKS, SharedSessions};

/// Time after which a copy is given up because files of sessions are being changed: whoever does that may wait for this very
/// copy.
const MAX_WAIT_FOR_CHANGES: Duration = Duration::from_secs(20);

/// How often a body is looked up again that another node replaces while it is read.
const ATTEMPTS: u32 = 4;

impl SharedSessions {
    async fn refresh_file(&self, row: SessionRow, path: PathBuf) -> Result<SessionRow> {
        self.reads.note(&path);
        if is_current_copy(&row, &path) {
            return Ok(row);
        }
        let id = row.header.id;
        let lock = usize::from(id.as_bytes()[15]) % FETCH_LOCKS;
        let _one_at_a_time = self.fetching[lock].lock().await;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            // Another request may have made the file by now.
            let row = self.sessions.get(id).await?.ok_or_else(|| deleted(&row))?;
            let Some(body) = row.body.clone().filter(|_| !is_current_copy(&row, &path)) else { return Ok(row) };
            match self.read_messages(&path, body).await {
                Ok(messages) => match self.write_file(row, &path, messages).await? {
                    Some(row) => return Ok(row),
                    None => continue,
                },
                // The row may name another one now.
                Err(failure) if failure.kind == ErrorKind::SessionNotFound => last = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(last.unwrap_or_else(Error::busy))
    }

    /// Reads the messages of a body: from the file, if that has the same ones below another header, or from the bucket.
    async fn read_messages(&self, path: &Path, body: BodyRow) -> Result<Vec<StoredMessage>> {
        let (file, sha256) = (path.to_owned(), body.sha256.clone());
        let held = run_blocking(move || {
            let file = file.is_file().then(|| session_files::read(&file).ok()?.file.ok()).flatten();
            Ok(file.filter(|file| file.sha256 == sha256))
        });
        match held.await? {
            Some(file) => Ok(file.messages),
            None => self.bodies.read(to_objects(body)).await,
        }
    }

    /// Writes the file of a session and its stamp. Returns `None` if the row names another body by now.
    async fn write_file(
        &self,
        row: SessionRow,
        path: &Path,
        messages: Vec<StoredMessage>,
    ) -> Result<Option<SessionRow>> {
        // Nobody changes the header or the file in between.
        let still = timeout(MAX_WAIT_FOR_CHANGES, self.files.change_lock.lock()).await;
        let _still = still.map_err(|_| busy_with_changes())?;
        let mut now = self.sessions.get(row.header.id).await?.ok_or_else(|| deleted(&row))?;
        let Some(body) = now.body.as_ref().filter(|body| Some(*body) == row.body.as_ref()) else { return Ok(None) };
        let dir = path.parent().unwrap_or(Path::new(".")).to_owned();
        let (header, sha256) = (now.header.clone(), body.sha256.clone());
        let written = run_blocking(move || {
            let agent_dir = dir.parent().unwrap_or(Path::new("."));
            if agent_dir.is_dir() {
                create_private(&dir).map_err(|e| Error::io(format_args!("cannot create {}", dir.display()), &e))?;
            }
            session_files::stage(agent_dir, &header, &messages, sha256)?.persist()
        });
        now.file_stamp = written.await?.stamp;
        if let Err(failure) = self.sessions.update(now.clone()).await {
            // The file is up to date. The next reader makes it again, from its own messages.
            tracing::debug!(session = %now.header.session_id, %failure, "cannot record a copy of a session");
        }
        Ok(Some(now))
    }
}

fn busy_with_changes() -> Error {
    Error::new(ErrorKind::Busy, "files of sessions are being changed").hint("try again in a moment")
}

fn deleted(row: &SessionRow) -> Error {
    Error::new(ErrorKind::SessionNotFound, format!("{} was deleted", row.header.session_id))
        .hint("list sessions: chorusctl history")
}

impl SharedBodies for SharedSessions {
    fn refresh(&self, row: SessionRow, path: PathBuf) -> BoxFuture<'_, Result<SessionRow>> {
        Box::pin(self.refresh_file(row, path))
    }

    fn probe(&self) -> BoxFuture<'_, Vec<(&'static str, Option<Error>)>> {
        Box::pin(async move {
            let results = chorus_session_objects::probe(&*self.bucket, &self.prefix).await;
            results.into_iter().map(|result| (describe_right(result.right), result.failure)).collect()
        })
    }

    fn compare(&self, limit: Duration) -> BoxFuture<'_, Result<BodyComparison>> {
        Box::pin(async move {
            let mut found = Comparison::default();
            // If the time is over, `found` has what was compared by then.
            if let Ok(Err(failure)) = timeout(limit, self.compare_into(&mut found)).await {
                return Err(failure);
            }
            let Comparison { compared, missing, missing_count, unnamed, complete } = found;
            // PREFIX/agents/AGENT/SESSION/EPOCH-WRITE
            let session = |key: &String| key.rsplit('/').nth(1).unwrap_or(key).to_owned();
            let missing = missing.iter().map(session).collect();
            Ok(BodyComparison { compared, missing, missing_count, unnamed, complete })
        })
    }

    fn page(&self, body: BodyRow, first: u64, count: u64) -> BoxFuture<'_, Result<Vec<StoredMessage>>> {
        self.bodies.page(to_objects(body), first, count)
    }

    fn run_upkeep(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.keep_up())
    }
}

fn describe_right(right: Right) -> &'static str {
    match right {
        Right::Write => "writing",
        Right::WriteOnce => "writing only if there is no object",
        Right::Read => "reading",
        Right::ReadRange => "reading a part",
        Right::List => "listing",
        Right::Delete => "deleting",
    }
}
