//! Compares the files of an agent with their rows, and carries out what follows from that.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::hex::hex;
use chorus_catalog::{AgentFileContent, AgentFileRow, MAX_AGENT_FILE_BYTES, MAX_AGENT_FILES_BYTES};
use chorus_runtime::run_blocking;
use chorus_store::AgentDir;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::conflict_name::conflict_path;
use crate::known_files::{KnownFile, KnownFiles};
use crate::listing::Listing;
use crate::local_changes::read_changes;
use crate::open_dir::OpenDir;
use crate::plan::{Plan, make_plan};
use crate::{SharedAgentFiles, file_path};

/// How often the files are compared until nothing is left to do: copies of conflicts become rows in the second round.
const MAX_ROUNDS: usize = 4;

/// Why the files are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// This daemon has just claimed the agent: others may have changed its rows.
    Claim { is_new_here: bool },
    /// It has had the agent since: only its files can have changed.
    Edit,
}

/// The knowledge before the rows are read.
struct Before {
    /// Nothing was known.
    is_first: bool,
    dir: Arc<OpenDir>,
    known: KnownFiles,
    listing: Listing,
}

impl SharedAgentFiles {
    /// Compares the files in the directory of an agent with its rows until they are the same.
    pub(crate) async fn sync(&self, of: &AgentDir, occasion: Occasion) -> Result<()> {
        let mut occasion = occasion;
        for _ in 0..MAX_ROUNDS {
            if !self.sync_once(of, occasion).await? {
                return Ok(());
            }
            // What was missing at the claim has been fetched.
            occasion = Occasion::Edit;
        }
        Ok(())
    }

    /// Returns true if something may be left to do.
    async fn sync_once(&self, of: &AgentDir, occasion: Occasion) -> Result<bool> {
        let Some(Before { is_first, dir, mut known, listing }) = self.look(of, occasion).await? else {
            return Ok(false);
        };
        let former = known.clone();
        let rows = self.valid_rows(of).await?;
        let (open, known_before) = (dir.clone(), known.clone());
        let (listing, local) = run_blocking(move || {
            let local = read_changes(&open, &listing, &known_before);
            Ok((listing, local))
        })
        .await?;
        let plan = make_plan(of, occasion, &mut known, &listing, local, &rows);
        let done = self.carry_out(of, plan, &dir, &rows, &mut known).await;
        if is_first || known != former {
            let path = self.known_path(of.agent);
            run_blocking(move || {
                known.store(&path).map_err(|e| Error::io(format_args!("cannot write {}", path.display()), &e))
            })
            .await?;
        }
        done
    }

    /// Looks at the directory; `None` if there is nothing to do.
    async fn look(&self, of: &AgentDir, occasion: Occasion) -> Result<Option<Before>> {
        let (path, dir) = (self.known_path(of.agent), of.dir.clone());
        run_blocking(move || {
            let failed = |e: io::Error| Error::io(format_args!("cannot read {}", dir.display()), &e);
            let Some(open) = OpenDir::open(&dir).map_err(failed)? else { return Ok(None) };
            let listing = Listing::of(&open).map_err(failed)?;
            let known = match occasion {
                Occasion::Claim { is_new_here: true } => None,
                _ => KnownFiles::load(&path),
            };
            if occasion == Occasion::Edit && known.as_ref().is_some_and(|known| known.describes(&listing)) {
                return Ok(None);
            }
            let is_first = known.is_none();
            Ok(Some(Before { is_first, dir: Arc::new(open), known: known.unwrap_or_default(), listing }))
        })
        .await
    }

    /// Returns the rows whose paths may be used, by path.
    async fn valid_rows(&self, of: &AgentDir) -> Result<BTreeMap<String, AgentFileRow>> {
        let mut rows = BTreeMap::new();
        for row in self.table.list(of.agent).await? {
            match file_path::check(&row.path) {
                Ok(()) => drop(rows.insert(row.path.clone(), row)),
                Err(why) => tracing::warn!(agent = of.name, file = ?row.path, why, "ignoring a file in the database"),
            }
        }
        Ok(rows)
    }

    async fn carry_out(
        &self,
        of: &AgentDir,
        plan: Plan,
        dir: &Arc<OpenDir>,
        rows: &BTreeMap<String, AgentFileRow>,
        known: &mut KnownFiles,
    ) -> Result<bool> {
        let (mut again, mut wanted) = (false, plan.fetch);
        known.is_incomplete = false;
        // Before anything takes its place.
        for path in plan.set_aside {
            if self.set_aside(of, dir, path.clone()).await? {
                known.files.remove(&path);
                again = true;
            } else {
                wanted.retain(|other| *other != path);
            }
        }
        // All are queued before the first is awaited: they are committed together.
        let sent = plan.send.into_iter().map(|(file, stamp, follows)| {
            let (path, sha256) = (file.path.clone(), hex(&file.sha256));
            (path, KnownFile { sha256, stamp }, self.table.put(of.agent, file, follows))
        });
        let sent = sent.collect::<Vec<_>>();
        let deleted = plan.delete_rows.into_iter().map(|(path, version)| {
            let done = self.table.delete(of.agent, path.clone(), version);
            (path, done)
        });
        let deleted = deleted.collect::<Vec<_>>();
        for (path, file, done) in sent {
            match done.await? {
                true => drop(known.files.insert(path, file)),
                false => again = true,
            }
        }
        for (path, done) in deleted {
            match done.await? {
                true => drop(known.files.remove(&path)),
                false => again = true,
            }
        }
        for path in plan.delete_files {
            let (open, at) = (dir.clone(), path.clone());
            let removed = run_blocking(move || Ok(open.remove(&at))).await?;
            if went_well(of, &path, removed)? {
                tracing::info!(agent = of.name, file = path, "deleted a file that was deleted on another node");
                known.files.remove(&path);
            }
        }
        self.fetch(of, wanted, dir, rows, known).await?;
        Ok(again)
    }

    /// Gives a file another name, because another node has changed or deleted it, too. Returns false if that fails.
    async fn set_aside(&self, of: &AgentDir, dir: &Arc<OpenDir>, path: String) -> Result<bool> {
        let (open, node, now, at) = (dir.clone(), self.node.clone(), self.clock.now(), path.clone());
        let copy = run_blocking(move || {
            let mut number = 1;
            loop {
                let copy = conflict_path(&at, &node, now, number);
                match open.rename(&at, &copy) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
                    renamed => return Ok((copy, renamed)),
                }
            }
        });
        let (copy, renamed) = copy.await?;
        if !went_well(of, &path, renamed)? {
            return Ok(false);
        }
        tracing::warn!(
            agent = of.name,
            file = path,
            copy,
            "a file was edited on this machine while another node had the agent; the edit is saved under another name"
        );
        Ok(true)
    }

    /// Writes rows to their files.
    async fn fetch(
        &self,
        of: &AgentDir,
        wanted: Vec<String>,
        dir: &Arc<OpenDir>,
        rows: &BTreeMap<String, AgentFileRow>,
        known: &mut KnownFiles,
    ) -> Result<()> {
        let mut left = MAX_AGENT_FILES_BYTES;
        let (mut paths, mut skipped) = (Vec::new(), Vec::new());
        for path in wanted {
            let bytes = rows.get(&path).map_or(0, |row| row.bytes);
            if bytes > MAX_AGENT_FILE_BYTES || bytes > left {
                skipped.push((path, "it is too large".to_owned()));
            } else {
                left -= bytes;
                paths.push(path);
            }
        }
        let files = if paths.is_empty() { Vec::new() } else { self.table.read(of.agent, paths).await? };
        let open = dir.clone();
        let (written, failed) = run_blocking(move || write_files(&open, files)).await?;
        let count = written.len();
        known.files.extend(written);
        for (path, e) in failed {
            // Something else is at its path, until somebody changes that.
            known.is_incomplete |= !is_permanent(&e);
            skipped.push((path, e.to_string()));
        }
        for (path, why) in skipped {
            tracing::warn!(agent = of.name, file = path, why, "cannot write a file of the agent");
        }
        if count > 0 {
            tracing::info!(agent = of.name, count, "wrote files that the agent has on other nodes");
        }
        Ok(())
    }

    /// Deletes what was known of an agent.
    pub(crate) async fn forget(&self, agent: Uuid) -> Result<()> {
        let path = self.known_path(agent);
        run_blocking(move || match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format_args!("cannot delete {}", path.display()), &e))
            }
            _ => Ok(()),
        })
        .await
    }

    fn known_path(&self, agent: Uuid) -> PathBuf {
        self.known.join(format!("{agent}.json"))
    }
}

type WrittenFiles = Vec<(String, KnownFile)>;

/// Writes files. Returns those that were written, and why the others were not. Blocks.
///
/// # Errors
/// A sync that failed: nothing may be acknowledged any more.
fn write_files(dir: &OpenDir, files: Vec<AgentFileContent>) -> Result<(WrittenFiles, Vec<(String, io::Error)>)> {
    let (mut written, mut failed) = (Vec::new(), Vec::new());
    for AgentFileContent { path, sha256, content } in files {
        let hash: [u8; 32] = Sha256::digest(&content).into();
        if hash != sha256 {
            failed.push((path, io::Error::new(io::ErrorKind::InvalidData, "its row in the database is damaged")));
            continue;
        }
        match dir.replace(&path, &content) {
            Ok(stamp) => written.push((path, KnownFile { sha256: hex(&sha256), stamp })),
            Err(e) => {
                let failure = Error::io(format_args!("cannot write {path}"), &e);
                if failure.fatal {
                    return Err(failure);
                }
                failed.push((path, e));
            }
        }
    }
    Ok((written, failed))
}

/// Returns false, and says so in the log, if a file could not be changed: the others are.
///
/// # Errors
/// A sync that failed: nothing may be acknowledged any more.
fn went_well(of: &AgentDir, path: &str, result: io::Result<()>) -> Result<bool> {
    let Err(e) = result else { return Ok(true) };
    let failure = Error::io(format_args!("cannot change {path}"), &e);
    if failure.fatal {
        return Err(failure);
    }
    tracing::warn!(agent = of.name, file = path, why = %e, "cannot change a file of the agent");
    Ok(false)
}

/// Returns true for errors that the next attempt has, too: something else is at the path of a file.
fn is_permanent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, PermissionDenied};
    matches!(error.kind(), IsADirectory | NotADirectory | InvalidData | PermissionDenied)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
