//! Catalog sync: the rows of agents and sessions follow the directories and files.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{TEMPORARY_PREFIX, move_dir};
use chorus_catalog::{SessionRow, place_of};
use chorus_clock::Clock;
use chorus_config::agent::{AGENT_FILE, AgentConfig, check_name};
use chorus_journal::to_nanos;
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{SessionHeader, SummarySource, TokenPair, Trigger, WorkingSet};
use chorus_runtime::run_blocking;
use chorus_session::SessionFile;
use chorus_session::file::derived_id;
use chorus_store::session_files::{ParsedSessionFile, path_of, stamp};
use chorus_store::session_form::{SessionForm, delete_shadowed, parse_file_name};
use chorus_store::{Store, session_files};
use futures_util::future::BoxFuture;
use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::agent::init::write_config;
use super::settings::EffectiveConfig;
use crate::agent::agent_index::AgentIndex;

/// The limit on pending rows of a scan.
const MAX_PENDING_ROWS: usize = 256;

/// The result of a scan.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SyncResult {
    /// Files that were new or changed.
    pub indexed: u64,
    pub corrupt: u64,
}

/// Brings the catalog, which is an index, up to the directories and files of agents.
#[derive(Debug)]
pub struct CatalogSync {
    pub store: Arc<Store>,
    pub agents: Arc<AgentIndex>,
    pub config: Arc<EffectiveConfig>,
    pub home: PathBuf,
    pub clock: Clock,
    /// The start of the daemon. Temporary files that are older were left by an interrupted write.
    pub started: Instant,
}

impl CatalogSync {
    /// Brings the rows of an agent's sessions up to its files, and removes what an interrupted write left. If the bodies of
    /// sessions are elsewhere, files are only copies, and nothing is read of them.
    pub async fn sync_sessions(&self, settings: &Arc<AgentSettings>) -> Result<SyncResult> {
        if self.store.bodies.is_none() {
            return self.add_files(settings).await;
        }
        let (dir, started) = (settings.dir.join("sessions"), self.started_at());
        let listed = run_blocking(move || changed_files(&dir, &HashMap::new(), started)).await?;
        self.delete_shadowed(settings, listed.shadowed).await;
        Ok(SyncResult::default())
    }

    /// The start of the daemon by the clock of the system. Computed from the uptime, because the clock may have been set
    /// since.
    fn started_at(&self) -> SystemTime {
        let now = SystemTime::now();
        now.checked_sub(self.started.elapsed()).unwrap_or(now)
    }

    /// Adds sessions whose files are in the directory of an agent, wherever the bodies of sessions are, and updates the rows
    /// of files that have changed.
    pub async fn add_files(&self, settings: &Arc<AgentSettings>) -> Result<SyncResult> {
        let known_stamps: HashMap<String, String> =
            self.store.catalog.sessions.file_stamps(settings.id).await?.into_iter().collect();
        let dir = settings.dir.join("sessions");
        let started = self.started_at();
        let listed = run_blocking(move || changed_files(&dir, &known_stamps, started)).await?;
        self.delete_shadowed(settings, listed.shadowed).await;
        let mut findings = SyncResult::default();
        // Pending writes, so that many rows share a commit, and the ids in them.
        let (mut pending, mut used_ids) = (Vec::new(), HashSet::new());
        for (name, path) in listed.changed {
            let found = run_blocking(move || session_files::read(&path)).await;
            let found = match found {
                Ok(found) => found,
                Err(failure) => {
                    tracing::warn!(agent = %settings.name, session = %name, %failure, "cannot read a session file");
                    continue;
                }
            };
            let known_row = self.store.catalog.sessions.list_named(Some(settings.id), name.clone()).await?.pop();
            let row = session_row(settings, &name, found, known_row, self.clock.now());
            findings.indexed += 1;
            if let Some(reason) = &row.corrupt {
                findings.corrupt += 1;
                tracing::warn!(agent = %settings.name, session = %name, reason, "a session file is corrupt; left unchanged");
            }
            // The file is a copy of a session, or was moved here from another agent: the first one keeps the id.
            let id = row.header.id;
            let taken = used_ids.contains(&id)
                || self
                    .store
                    .catalog
                    .sessions
                    .get(id)
                    .await?
                    .is_some_and(|other| other.header.agent_id != settings.id || other.header.session_id != name);
            let row = if taken { with_id(row, derived_id(&format!("{}/{name}", settings.id))) } else { row };
            used_ids.insert(row.header.id);
            pending.push(self.store.catalog.sessions.upsert(row));
            if pending.len() == MAX_PENDING_ROWS {
                try_join_all(pending.drain(..)).await?;
            }
        }
        try_join_all(pending).await?;
        Ok(findings)
    }

    /// Deletes compressed files of sessions that have a plain one, too: a crash kept that from happening.
    async fn delete_shadowed(&self, settings: &AgentSettings, names: Vec<String>) {
        for name in names {
            // One may be about to replace the plain one.
            let _no_changes = self.store.files.change_lock.lock().await;
            let path = path_of(&settings.dir, &name);
            let deleted = run_blocking(move || delete_shadowed(&path));
            match deleted.await {
                Ok(()) => {
                    tracing::info!(agent = %settings.name, session = %name, "deleted the copy of an interrupted compression")
                }
                Err(failure) => {
                    tracing::warn!(agent = %settings.name, session = %name, %failure, "two files of a session; both are left");
                }
            }
        }
    }

    /// Like [`CatalogSync::sync_sessions`], but only logs errors, for an agent that has just been created and must not
    /// fail any more. The next start scans again.
    pub async fn try_sync_sessions(&self, settings: &Arc<AgentSettings>) {
        if let Err(failure) = self.sync_sessions(settings).await {
            tracing::warn!(agent = %settings.name, %failure, "cannot list the sessions");
        }
    }

    /// Adds agents whose directory exists without a row, since the directories are authoritative. Completes interrupted
    /// imports and renames.
    pub fn sync_agents(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let dir = self.home.join(super::agent::AGENTS_DIR);
            let agents = self.agents.clone();
            let unknown = run_blocking(move || {
                let mut names = list_dirs(&dir)?;
                let without_dir = agents_without_dir(&agents, &dir, &names);
                if !without_dir.is_empty() || names.iter().any(|name| name.starts_with(TEMPORARY_PREFIX)) {
                    complete_imports(&dir, &without_dir);
                    remove_unfinished_dirs(&dir);
                    names = list_dirs(&dir)?;
                }
                agents.retain_unknown(&mut names);
                Ok(names)
            })
            .await?;
            if unknown.is_empty() {
                return Ok(());
            }
            let known_dirs: HashSet<String> =
                self.store.catalog.agents.list(true).await?.into_iter().map(|row| row.dir).collect();
            for name in unknown {
                let dir = format!("{}/{name}", super::agent::AGENTS_DIR);
                if !known_dirs.contains(&dir) {
                    self.adopt_dir(&name, &dir).await?;
                }
            }
            Ok(())
        })
    }

    async fn adopt_dir(&self, name: &str, dir: &str) -> Result<()> {
        let path = self.home.join(dir).join(AGENT_FILE);
        let defaults = self.config.current();
        let read = run_blocking(move || {
            let text = std::fs::read_to_string(&path).map_err(|e| e.to_string());
            let stamp = std::fs::metadata(&path).map(|metadata| stamp(&metadata)).unwrap_or_default();
            Ok(text.and_then(|text| AgentConfig::parse(&text, &defaults)).map(|config| (config, stamp)))
        })
        .await?;
        match read {
            Ok((config, stamp)) if self.is_renamed_dir(&config) => {
                let (config, stamp) =
                    if config.name == name { (config, stamp) } else { self.write_dir_name(config, name, dir).await? };
                self.store.catalog.agents.upsert(super::agent::agent_row(dir, &config, stamp.clone())).await?;
                self.agents.insert(super::agent::agent_entry(&self.home, dir, &config, stamp));
                tracing::warn!(agent = %name, "completed an interrupted rename");
            }
            Ok((config, stamp)) if config.name == name && self.agents.by_id(config.id).is_none() => {
                self.store.catalog.agents.upsert(super::agent::agent_row(dir, &config, stamp.clone())).await?;
                self.agents.insert(super::agent::agent_entry(&self.home, dir, &config, stamp));
                tracing::info!(agent = %name, "added an agent from its directory");
            }
            Ok(_) => tracing::warn!(dir, "ignoring a directory in agents/: it is a copy of another agent's"),
            Err(problem) => tracing::warn!(dir, problem, "ignoring a directory in agents/: it is not an agent"),
        }
        Ok(())
    }

    /// Returns true if this agent.json belongs to an agent whose own directory is missing: its rename was interrupted,
    /// or a person moved the directory.
    fn is_renamed_dir(&self, config: &AgentConfig) -> bool {
        self.agents.by_id(config.id).is_some_and(|entry| entry.settings.dir.symlink_metadata().is_err())
    }

    /// Writes the directory's name into its agent.json.
    async fn write_dir_name(&self, config: AgentConfig, name: &str, dir: &str) -> Result<(AgentConfig, String)> {
        check_name(name)?;
        let mut map = config.map().clone();
        map.insert("name".into(), name.into());
        let (path, defaults) = (self.home.join(dir), self.config.current());
        run_blocking(move || {
            let config = AgentConfig::from_map(map, &defaults).map_err(Error::internal)?;
            let stamp = write_config(&path, &config)
                .map_err(|e| Error::io(format_args!("cannot write {}", path.join(AGENT_FILE).display()), &e))?;
            Ok((config, stamp))
        })
        .await
    }
}

/// Returns the names of the directories in `dir`. What is not UTF-8 in them is replaced.
fn list_dirs(dir: &Path) -> Result<HashSet<String>> {
    let failed = |e: std::io::Error| Error::io(format_args!("cannot read {}", dir.display()), &e);
    let mut names = HashSet::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Returns the agents whose directory is missing. Those in `dir`, of which `names` are the directories, need no look at
/// each.
fn agents_without_dir(agents: &AgentIndex, dir: &Path, names: &HashSet<String>) -> Vec<Arc<AgentSettings>> {
    let dir = dir.as_os_str().as_bytes();
    let is_listed = |path: &Path| {
        let name = path.as_os_str().as_bytes().strip_prefix(dir).and_then(|rest| rest.strip_prefix(b"/"));
        name.and_then(|name| str::from_utf8(name).ok()).is_some_and(|name| names.contains(name))
    };
    agents.settings_where(|settings| !is_listed(&settings.dir) && settings.dir.symlink_metadata().is_err())
}

fn with_id(mut row: SessionRow, id: uuid::Uuid) -> SessionRow {
    row.header.id = id;
    row
}

/// The files of a directory with sessions.
#[derive(Debug, Default)]
struct ListedFiles {
    /// Names and paths of session files whose stamp differs from the known one.
    changed: Vec<(String, PathBuf)>,
    /// Names of sessions with a plain and a compressed file.
    shadowed: Vec<String>,
}

fn changed_files(dir: &Path, known_stamps: &HashMap<String, String>, started: SystemTime) -> Result<ListedFiles> {
    let failed = |e: std::io::Error| Error::io(format_args!("cannot read {}", dir.display()), &e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(TEMPORARY_PREFIX) {
            // Older than this process, so its writer has ended.
            if entry.metadata().and_then(|m| m.modified()).is_ok_and(|at| at < started) {
                let _ = std::fs::remove_file(entry.path());
            }
            continue;
        }
        let Some((session_id, form)) = parse_file_name(&name) else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            files.push((session_id.to_owned(), form, stamp(&metadata), entry.path()));
        }
    }
    files.sort_unstable();
    let mut listed = ListedFiles::default();
    let mut newest = None;
    for (session_id, form, stamp, path) in files {
        // The plain one of two comes first, and counts.
        if form == SessionForm::Compressed && newest.as_ref() == Some(&session_id) {
            listed.shadowed.push(session_id);
            continue;
        }
        newest = Some(session_id.clone());
        if known_stamps.get(&session_id) != Some(&stamp) {
            listed.changed.push((session_id, path));
        }
    }
    Ok(listed)
}

/// Builds the row of a session file from its parsed content.
pub fn session_row(
    settings: &AgentSettings,
    name: &str,
    found: ParsedSessionFile,
    known_row: Option<SessionRow>,
    now: Timestamp,
) -> SessionRow {
    let file_stamp = found.stamp;
    let last_used_at = known_row.as_ref().map_or(now, |row| row.last_used_at);
    let place = known_row.as_ref().map(|row| row.place);
    match (found.file, known_row) {
        (Ok(file), known) => SessionRow {
            // Keep the hash of the save, so that a restore can report that the messages were changed since. An import says in
            // the file that it added messages.
            sha256: known
                .filter(|known| known.header.id == file.header.id && !known.sha256.is_empty() && !has_grown(&file))
                .map_or(file.sha256, |known| known.sha256),
            place: place.filter(|_| file.header.source.is_none()).unwrap_or_else(|| place_of(&file.header)),
            // The directory says which agent owns the session, and the file name is its name.
            header: SessionHeader { agent_id: settings.id, session_id: name.to_owned(), ..file.header },
            file_stamp,
            corrupt: None,
            last_used_at,
            body: None,
        },
        (Err(error), Some(known)) => SessionRow { file_stamp, corrupt: Some(error.to_string()), ..known },
        (Err(error), None) => {
            let header = header_of_unreadable(settings, name, now);
            let place = to_nanos(header.saved_at);
            let corrupt = Some(error.to_string());
            SessionRow { header, sha256: String::new(), file_stamp, corrupt, last_used_at, place, body: None }
        }
    }
}

/// Returns true if the messages are those that an import wrote.
fn has_grown(file: &SessionFile) -> bool {
    file.header.source.as_ref().is_some_and(|source| source.messages_sha256 == file.sha256)
}

/// Builds the header of a file that cannot be read, from its name and the date in it.
fn header_of_unreadable(settings: &AgentSettings, name: &str, now: Timestamp) -> SessionHeader {
    let saved_at = name
        .get(..10)
        .and_then(|date| date.parse::<jiff::civil::Date>().ok())
        .and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC).ok())
        .map_or(now, |start| start.timestamp());
    SessionHeader {
        schema: SESSION_SCHEMA,
        id: derived_id(&format!("{}/{name}", settings.id)),
        session_id: name.to_owned(),
        agent_id: settings.id,
        agent_name: settings.name.clone(),
        conversation: None,
        source: None,
        description: None,
        summary: None,
        summary_source: SummarySource::None,
        saved_at,
        started_at: saved_at,
        trigger: Trigger::ManualSave,
        model: None,
        message_count: 0,
        query_count: 0,
        token_estimate: 0,
        restoration_tokens: TokenPair::default(),
        parent_id: None,
        workspace_commit: None,
        tags: Vec::new(),
        working_set: WorkingSet::default(),
    }
}

/// Removes directories in agents/ that an interrupted init left. Only one init runs at a time.
pub fn remove_unfinished_dirs(agents: &Path) {
    for entry in std::fs::read_dir(agents).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Completes interrupted imports of agents, which have a row and a complete directory that was not moved into place
/// yet. Blocks.
fn complete_imports(agents: &Path, without_directory: &[Arc<AgentSettings>]) {
    if without_directory.is_empty() {
        return;
    }
    for entry in std::fs::read_dir(agents).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            continue;
        }
        let text = std::fs::read_to_string(entry.path().join(AGENT_FILE)).unwrap_or_default();
        let id = |value: serde_json::Value| value.get("id")?.as_str()?.parse::<uuid::Uuid>().ok();
        let Some(id) = serde_json::from_str(&text).ok().and_then(id) else { continue };
        let Some(settings) = without_directory.iter().find(|settings| settings.id == id) else { continue };
        match move_dir(&entry.path(), &settings.dir) {
            Ok(()) => tracing::warn!(agent = %settings.name, "completed an interrupted import"),
            Err(e) => tracing::error!(agent = %settings.name, "cannot complete an interrupted import: {e}"),
        }
    }
}
