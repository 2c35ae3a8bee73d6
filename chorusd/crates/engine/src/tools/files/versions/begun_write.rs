//! A write of a file by a conversation, from the check to its end. The caller holds the file's lock.

use chorus_base::error::Error;
use chorus_catalog::{FileHash, FileWriteRow};
use chorus_session::conversation::ConversationKey;

use super::unseen_change::{UnseenChange, find_unseen_change};
use super::{ConversationFiles, SeenFile, hash_bytes};
use crate::tools::files::EditKind;

/// A write that was checked.
#[derive(Debug)]
pub(in crate::tools::files) struct BegunWrite<'a> {
    files: ConversationFiles<'a>,
    path: &'a str,
    is_shared: bool,
    /// True if the conversation has seen all that the file contains.
    has_seen_all: bool,
}

/// A write that is in the catalog, where it has to be.
#[derive(Debug)]
pub(in crate::tools::files) struct RecordedWrite<'a> {
    files: ConversationFiles<'a>,
    path: &'a str,
    /// The new version; `None` if it contains something that the conversation has not seen.
    seen: Option<SeenFile>,
}

impl<'a> ConversationFiles<'a> {
    /// Checks that the conversation may edit the file at `path`. `old_hash` returns that of its content, `None` if there is
    /// no file.
    ///
    /// # Errors
    /// For the model: another conversation changed the file, and this one has not seen that.
    pub(in crate::tools::files) async fn begin_write(
        self,
        path: &'a str,
        kind: EditKind,
        old_hash: impl FnOnce() -> Result<Option<FileHash>, String>,
    ) -> Result<BegunWrite<'a>, String> {
        let is_shared = self.versions.is_shared(self.key);
        let unseen = match is_shared {
            true => self
                .find_unseen(path, old_hash()?)
                .await
                .map_err(|failure| format!("nothing was changed: cannot read who changed {path} before ({failure})"))?,
            false => None,
        };
        #[cfg(test)]
        super::interleaving::pause().await;
        match unseen {
            Some(change) if change.forbids(kind) => {
                let key = ConversationKey { agent: self.key.agent, id: change.conversation() };
                let name = self.versions.conversations.name(key);
                let name = name.as_deref().unwrap_or("another conversation");
                Err(change.refusal(name))
            }
            unseen => Ok(BegunWrite { files: self, path, is_shared, has_seen_all: unseen.is_none() }),
        }
    }

    async fn find_unseen(self, path: &str, disk: Option<FileHash>) -> Result<Option<UnseenChange>, Error> {
        let Some(disk) = disk else { return Ok(None) };
        let history = self.versions.table.history(self.key.agent, path.to_owned()).await?;
        let seen = self.versions.seen.lock().get(self.key.id, path);
        let commands = self.versions.command_times(self.key.agent);
        Ok(find_unseen_change(self.key.id, &disk, seen, &history, &commands))
    }
}

impl<'a> BegunWrite<'a> {
    /// Records that the file gets this content. Must be called before it does.
    ///
    /// # Errors
    /// For the model: the write cannot be recorded.
    pub(in crate::tools::files) async fn record(self, bytes: &[u8]) -> Result<RecordedWrite<'a>, String> {
        let Self { files, path, is_shared, has_seen_all } = self;
        let position = files.next_position();
        let seen = has_seen_all.then(|| SeenFile::whole(hash_bytes(bytes), position));
        if is_shared {
            let row = FileWriteRow {
                agent: files.key.agent,
                path: path.to_owned(),
                conversation: files.key.id,
                hash: seen.map(|seen| seen.hash),
                at: position,
            };
            let recorded = files.versions.table.record(row).await;
            recorded.map_err(|failure| format!("nothing was changed: cannot record who changed {path} ({failure})"))?;
        }
        #[cfg(test)]
        super::interleaving::pause().await;
        Ok(RecordedWrite { files, path, seen })
    }
}

impl RecordedWrite<'_> {
    /// Notes that the conversation has seen what it has written.
    pub(in crate::tools::files) fn finish(self) {
        if let Some(seen) = self.seen {
            self.files.note_seen(self.path, seen);
        }
    }
}
