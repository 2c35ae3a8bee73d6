//! Reads the databases of programs: each conversation that has changed is written as a document, which is imported.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_catalog::CapturedFile;
use chorus_runtime::run_blocking;
use chorus_tool_databases::{ConversationDatabase, ConversationEntry, DatabaseError};
use chorus_tool_files::ConversationInfo;
use tokio::sync::watch;

use super::file_scan::TranscriptFile;
use super::reading::{READ_BUFFER_BYTES, Reader, failed_row_of, row_of};
use super::settings::CaptureSettings;
use crate::ops::import_sink::create_spool;

impl Reader {
    /// Imports the conversations of a database that have changed since they were read. Returns `None` if it is gone.
    ///
    /// Conversations that cannot be read are recorded, and do not keep others from being read.
    pub(super) async fn read_database(
        &self,
        file: &TranscriptFile,
        settings: &watch::Receiver<CaptureSettings>,
    ) -> Result<Option<CapturedFile>> {
        let path = file.path.clone();
        let listed = run_blocking(move || {
            if !path.exists() {
                return Ok(None);
            }
            ConversationDatabase::open(&path).and_then(|database| database.list()).map(Some).map_err(|e| failed(&e))
        });
        let Some(entries) = listed.await? else { return Ok(None) };
        // Counts are those of its conversations, which have rows of their own.
        let mut row = row_of(file, None, None);
        for ConversationEntry { id, changed } in entries {
            let key = conversation_path(&file.path, &id);
            let before = self.ops.capture.files.lock().get(&key).cloned();
            if before.as_ref().and_then(|before| before.marker.as_ref()) == Some(&changed) {
                continue;
            }
            if settings.has_changed().unwrap_or(true) {
                // The rest is read with the new settings.
                row.inode = 0;
                break;
            }
            let conversation = match self.read_conversation(file, id, &key).await {
                Ok(Some(conversation)) => conversation,
                Ok(None) => continue,
                Err(failure) => {
                    tracing::warn!(path = %key.display(), %failure, "cannot capture a conversation");
                    // Without its marker, so that the next look tries again.
                    CapturedFile { path: key, ..failed_row_of(file, before.as_ref(), &failure) }
                }
            };
            let conversation = match conversation.failure {
                None => CapturedFile { marker: Some(changed), ..conversation },
                Some(_) => {
                    row.inode = 0;
                    conversation
                }
            };
            self.ops.capture.record(conversation).await;
        }
        Ok(Some(row))
    }

    /// Reads a conversation; `None` if it was deleted since it was listed.
    async fn read_conversation(&self, file: &TranscriptFile, id: String, key: &Path) -> Result<Option<CapturedFile>> {
        let (database, dir) = (file.path.clone(), self.ops.session_importer.spool_dir());
        let document = run_blocking(move || match write_document(&database, &id, &dir) {
            Ok(document) => Ok(Some(document)),
            Err(DatabaseError::NoConversation(_)) => Ok(None),
            Err(error) => Err(failed(&error)),
        });
        let Some((document, bytes)) = document.await? else { return Ok(None) };
        let document = BufReader::with_capacity(READ_BUFFER_BYTES, document);
        let outcome = self.import(file.source, (document, bytes), key, (ConversationInfo::default(), None)).await?;
        Ok(Some(outcome.add_to(CapturedFile { path: key.to_owned(), ..row_of(file, None, None) })))
    }
}

/// Writes a conversation into an unnamed file in `dir`. Returns it with its size. Blocks.
fn write_document(database: &Path, id: &str, dir: &Path) -> std::result::Result<(File, u64), DatabaseError> {
    let mut out = BufWriter::with_capacity(READ_BUFFER_BYTES, create_spool(dir)?);
    ConversationDatabase::open(database)?.write_document(id, &mut out)?;
    out.flush()?;
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let bytes = file.stream_position()?;
    file.rewind()?;
    Ok((file, bytes))
}

/// Returns the path by which the row of a conversation is known: below its database, where no file can be.
fn conversation_path(database: &Path, id: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("/");
    path.push(id);
    path.into()
}

fn failed(error: &DatabaseError) -> Error {
    Error::invalid(format!("cannot read the database: {error}"))
}
