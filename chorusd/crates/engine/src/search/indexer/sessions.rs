//! Indexes saved sessions, large ones in parts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use chorus_catalog::{AgentRow, SessionRow};
use chorus_proto::ErrorKind;
use chorus_search::{SearchIndex, SourceId};
use chorus_store::session_files;
use uuid::Uuid;

use super::Indexer;
use crate::search::failure::Failure;
use crate::search::{message_text, source};

/// Messages of a session that are indexed at least before something else may go first.
const MESSAGES_AT_ONCE: u64 = 1000;

/// Begin of the stamp of a session that is indexed in part; its own stamp follows.
const PART: &str = "part ";

/// Begin of the directories of agents that were destroyed and can come back.
const TRASH: &str = "trash/";

/// The outcome of indexing a session.
#[derive(Debug, Clone, Copy, Default)]
struct IndexedSession {
    /// True if texts were removed.
    has_removed: bool,
    /// True if there was no time for all of its messages.
    is_in_part: bool,
}

impl Indexer {
    /// Indexes sessions, at least one or a part of it; those for which the time until `end` does not suffice wait. Returns true if
    /// texts were removed.
    pub(super) async fn index_sessions(
        &mut self,
        index: &Arc<SearchIndex>,
        ids: Vec<Uuid>,
        end: Instant,
    ) -> Result<bool, Failure> {
        let rows = self.store.catalog.sessions.get_all(ids.clone()).await?;
        let mut rows: HashMap<Uuid, SessionRow> = rows.into_iter().map(|row| (row.header.id, row)).collect();
        let owners = rows.values().map(|row| row.header.agent_id).collect();
        let owners = self.store.catalog.agents.list_by_id(owners).await?;
        let is_there = |row: &AgentRow| !row.dir.starts_with(TRASH);
        let owners = owners.into_iter().filter(is_there);
        let dirs: HashMap<Uuid, PathBuf> = owners.map(|row| (row.id, self.home.join(row.dir))).collect();
        let (mut removed, mut ids) = (false, ids.into_iter());
        for id in ids.by_ref() {
            let row = rows.remove(&id).filter(|row| row.corrupt.is_none());
            let row = row.and_then(|row| Some((dirs.get(&row.header.agent_id)?, row)));
            match row {
                Some((dir, row)) => {
                    if self.put_known_body(index, &row)? {
                        continue;
                    }
                    let row = match self.store.with_local_file(row, dir).await {
                        Ok(row) => row,
                        Err(error) => {
                            tracing::warn!(session = %id, %error, "not indexed");
                            continue;
                        }
                    };
                    let indexed = self.index_session(index, &row, dir, end)?;
                    removed |= indexed.has_removed;
                    if indexed.is_in_part {
                        self.backlog.push(id);
                    }
                }
                None => removed |= self.writer(index)?.remove(SourceId::from(id))?,
            }
            if self.stop.is_cancelled() || Instant::now() >= end {
                break;
            }
        }
        self.backlog.put_back(ids.collect());
        Ok(removed)
    }

    /// Updates the header of a session whose body is indexed already, without reading it. Returns false if the file has to
    /// be read.
    fn put_known_body(&mut self, index: &Arc<SearchIndex>, row: &SessionRow) -> Result<bool, Failure> {
        let Some(body) = row.body.as_ref().filter(|_| self.store.is_shared(row)) else { return Ok(false) };
        let source = source::of_session(row, &body.sha256, &self.agents);
        let writer = self.writer(index)?;
        let is_known = writer.source(source.id)?.is_some_and(|known| known.stamp == source.stamp);
        if is_known {
            writer.put_header(&source)?;
        }
        Ok(is_known)
    }

    /// Indexes a session in the directory `dir` of its agent, or as much of it as fits until `end`.
    fn index_session(
        &mut self,
        index: &Arc<SearchIndex>,
        row: &SessionRow,
        dir: &Path,
        end: Instant,
    ) -> Result<IndexedSession, Failure> {
        let id = SourceId::from(row.header.id);
        let path = session_files::path_of(dir, &row.header.session_id);
        // With what was indexed of it since the last commit.
        let known = self.writer(index)?.source(id)?;
        let file = match self.store.files.index_cache.open_once(&path) {
            Ok(Ok(file)) => file,
            Err(error) if error.kind != ErrorKind::SessionNotFound => {
                // It cannot be read now; the next start tries again.
                tracing::warn!(session = %row.header.session_id, %error, "not indexed");
                return Ok(IndexedSession::default());
            }
            _ => return Ok(IndexedSession { has_removed: self.writer(index)?.remove(id)?, is_in_part: false }),
        };
        // The catalog has the hash of the save, even if somebody has changed the messages since.
        let mut source = source::of_session(row, &file.index.sha256, &self.agents);
        if known.as_ref().is_some_and(|known| known.stamp == source.stamp) {
            self.writer(index)?.put_header(&source)?;
            return Ok(IndexedSession::default());
        }
        let part = known.as_ref().filter(|known| known.stamp.strip_prefix(PART) == Some(&source.stamp));
        let held = part.map_or(0, |part| part.messages);
        // What is replaced is replaced at once.
        let is_new = known.is_none() || part.is_some();
        let tool_results = self.service.settings.tool_results;
        let (mut reader, mut problem, mut count, mut is_in_part) = (file.messages_from(held), None, 0, false);
        let agent = row.header.agent_name.clone();
        let messages = std::iter::from_fn(|| {
            if is_new && count >= MESSAGES_AT_ONCE && Instant::now() >= end {
                is_in_part = true;
                return None;
            }
            count += 1;
            match reader.read() {
                Ok(Ok(message)) => message.map(|message| message_text::extract(&message, &agent, tool_results)),
                Ok(Err(error)) => {
                    problem = Some(error.to_string());
                    None
                }
                Err(error) => {
                    problem = Some(error.to_string());
                    None
                }
            }
        });
        let writer = self.writer(index)?;
        let has_removed = if held == 0 {
            writer.put(&source, messages)?
        } else if writer.extend(&source, held, messages)? {
            false
        } else {
            return Ok(IndexedSession { has_removed: writer.remove(id)?, is_in_part: true });
        };
        if let Some(problem) = problem {
            tracing::warn!(session = %row.header.session_id, problem, "indexed in part");
            // The next start tries again.
            (source.stamp, source.header_stamp) = (String::new(), String::new());
            self.writer(index)?.put_header(&source)?;
        } else if is_in_part {
            source.stamp.insert_str(0, PART);
            source.header_stamp.clear();
            self.writer(index)?.put_header(&source)?;
        }
        Ok(IndexedSession { has_removed, is_in_part })
    }
}
