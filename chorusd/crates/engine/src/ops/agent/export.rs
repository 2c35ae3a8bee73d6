//! The operations `agent.export.*`.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_catalog::{MemoryRow, MemoryTable};
use chorus_clock::Clock;
use chorus_config::Config;
use chorus_config::agent::render;
use chorus_proto::methods::agent_transfer::{ExportBeginParams, ExportBeginResult, ExportReadParams, ExportReadResult};
use chorus_proto::{ErrorKind, Session};
use chorus_runtime::run_blocking;
use chorus_sandbox::Sandbox;
use chorus_session::SessionInput;
use chorus_store::session_form::{SessionForm, parse_file_name};
use chorus_store::{Store, session_form};
use serde_json::Value;
use tokio::sync::RwLock;
use uuid::Uuid;

use super::config::effective_config;
use super::{AgentResolver, workspace_bundle};
use crate::KeyedMutex;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::agent_archive::{self, ArchiveWriter, ExportedAgent, Manifest};
use crate::ops::import_sink::create_spool;
use crate::ops::resolve_agent;
use crate::ops::schedule::transfer::schedule_lines;
use crate::ops::session::import::OnProgress;
use crate::ops::transfers::AllTransfers;

/// Bytes per reply, before base64 encoding.
const CHUNK_BYTES: usize = 1 << 20;
/// The limit on schedules, of which an agent may have fewer.
const MAX_LISTED_SCHEDULES: u64 = 1000;
/// The limit on nested folders of docs/.
const MAX_DOCS_DEPTH: usize = 32;

/// The services that collect what an agent consists of.
#[derive(Debug)]
pub struct AgentExporter {
    pub agents: Arc<AgentResolver>,
    pub store: Arc<Store>,
    pub registry: Arc<Registry>,
    pub memories: Arc<dyn MemoryTable>,
    pub sandbox: Arc<Sandbox>,
    pub git_locks: Arc<KeyedMutex<Uuid>>,
    /// Locked for reading while files are read, so that none is moved or deleted.
    pub sessions_lock: Arc<RwLock<()>>,
    pub clock: Clock,
}

/// Builds the archive of an agent: configuration, docs, sessions, memory and workspace. Unsaved messages are saved
/// first, so that the archive contains the whole conversation.
pub async fn begin(
    exporter: &AgentExporter,
    transfers: &AllTransfers,
    connection: u64,
    params: ExportBeginParams,
    mut progress: OnProgress,
) -> Result<ExportBeginResult> {
    let agents = &exporter.agents;
    let agent = agents.resolve(Some(&params.name)).await?;
    let saved = save_unsaved(&exporter.registry, &agent.settings).await?;
    let dir = agents.home.join("db");
    let (bundle, file) = run_blocking(move || {
        let new = || create_spool(&dir).map_err(|e| Error::io("cannot start an export", &e));
        Ok((new()?, new()?))
    })
    .await?;
    let mut warnings = {
        let _alone = exporter.git_locks.lock(agent.settings.id).await;
        workspace_bundle::pack(&exporter.sandbox, &agents.home, &agent.settings.workspace(), &bundle).await?
    };
    // From here on none of the agent's files is moved or deleted.
    let _stays = exporter.sessions_lock.read().await;
    let agent = agents
        .index
        .by_id(agent.settings.id)
        .ok_or_else(|| resolve_agent::unknown_agent_error(&agents.index, &params.name))?;
    let settings = agent.settings.clone();
    fetch_files(&exporter.store, &settings).await?;
    let (config, _) = effective_config(&agents.table, &agents.config, &agent).await?;
    let memories = exporter.memories.list_written_by(settings.id).await?;
    let schedules = exporter.store.catalog.schedules.list(Some(settings.id), 0, MAX_LISTED_SCHEDULES).await?;
    let schedules = schedule_lines(schedules);
    let mut config = config.map().clone();
    // These keys refer to this home: to its channels and to tasks that run in it.
    for key in ["channel_id", "guild_id"] {
        config.insert(key.into(), Value::Null);
    }
    config.insert("running_tasks".into(), Value::Array(Vec::new()));
    let (now, count) = (exporter.clock.now(), memories.len() as u64);
    let name = settings.name.clone();
    let (file, size, sessions, left_out) = run_blocking(move || {
        let failed = |e: std::io::Error| Error::io(format_args!("cannot export {}", settings.name), &e);
        let (sessions, docs, mut left_out) = list_files(&settings.dir).map_err(failed)?;
        let mut writer = ArchiveWriter::new(BufWriter::with_capacity(CHUNK_BYTES, file));
        let mut add = |path: &str, bytes: &[u8]| writer.add(path, bytes.len() as u64, bytes);
        add(agent_archive::AGENT_MEMBER, render(&config).as_bytes()).map_err(failed)?;
        add(agent_archive::MEMORY_MEMBER, &memory_lines(&memories)).map_err(failed)?;
        let mut schema = agent_archive::SCHEMA;
        if !schedules.is_empty() {
            add(agent_archive::SCHEDULES_MEMBER, &schedules).map_err(failed)?;
            schema = agent_archive::SCHEMA_WITH_SCHEDULES;
        }
        let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let size = bundle.metadata().map_err(failed)?.len();
        let (mut done, all) = (0, size + docs.iter().chain(&sessions).map(|(_, file)| length(file)).sum::<u64>());
        for (path, file) in &docs {
            let source = File::open(file).map_err(failed)?;
            let size = source.metadata().map_err(failed)?.len();
            writer.add(path, size, source).map_err(failed)?;
            done += size;
            progress(done, all);
        }
        for (path, file) in &sessions {
            let source = session_form::open(file).map_err(failed)?;
            match text_bytes(&source) {
                Ok(size) => writer.add(path, size, source.reader()).map_err(failed)?,
                Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                    left_out.push(format!("not exported: {path} ({e})"));
                }
                Err(e) => return Err(failed(e)),
            }
            done += length(file);
            progress(done, all);
        }
        writer.add(agent_archive::WORKSPACE_MEMBER, size, FileReader(&bundle, 0)).map_err(failed)?;
        let agent = ExportedAgent { id: settings.id, name: settings.name.clone() };
        let chorus = env!("CARGO_PKG_VERSION").to_owned();
        let manifest = |members| Manifest { schema, chorus, exported_at: now, agent, members };
        let mut out = writer.finish(manifest).map_err(failed)?;
        out.flush().map_err(failed)?;
        let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
        let size = file.metadata().map_err(failed)?.len();
        Ok((file, size, sessions.len() as u64, left_out))
    })
    .await?;
    warnings.extend(left_out);
    tracing::info!(agent = %name, size, sessions, "agent exported");
    let export = transfers.agent_downloads.open(connection, (), file)?;
    Ok(ExportBeginResult { export, size, agent_name: name, sessions, memories: count, saved, warnings })
}

/// Returns a chunk of the archive.
pub async fn read(
    transfers: &Arc<AllTransfers>,
    config: &Config,
    connection: u64,
    params: ExportReadParams,
) -> Result<ExportReadResult> {
    let transfers = transfers.clone();
    let max_bytes = CHUNK_BYTES.min(config.max_frame / 2);
    run_blocking(move || {
        transfers.agent_downloads.with_transfer(connection, params.export, |spool| {
            let failed = |e: std::io::Error| Error::io("cannot read an export", &e);
            let size = spool.file.metadata().map_err(failed)?.len();
            let offset = params.offset.unwrap_or(0).min(size);
            let mut piece = vec![0; usize::try_from(size - offset).unwrap_or(max_bytes).min(max_bytes)];
            spool.file.read_exact_at(&mut piece, offset).map_err(failed)?;
            let end = offset + piece.len() as u64;
            Ok(ExportReadResult { data_base64: STANDARD.encode(piece), next: (end < size).then_some(end) })
        })
    })
    .await
}

/// Saves the messages of all conversations that no session holds. Returns the session that was saved last.
async fn save_unsaved(registry: &Arc<Registry>, settings: &AgentSettings) -> Result<Option<Session>> {
    let mut newest = None;
    for conversation in registry.live_conversations(Some(settings.id)) {
        if registry.context_info(conversation).is_none_or(|context| context.unsaved == 0) {
            continue;
        }
        match registry.ask(conversation, command::save(None, Vec::new(), false)).await {
            Ok(saved) => newest = Some(*saved.session),
            // Another request has saved them in between.
            Err(failure) if failure.kind == ErrorKind::NothingToSave => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(newest)
}

/// Copies the files of an agent's sessions whose bodies are elsewhere to this machine.
async fn fetch_files(store: &Store, settings: &AgentSettings) -> Result<()> {
    if store.bodies.is_none() {
        return Ok(());
    }
    for id in store.catalog.sessions.ids_of_agent(settings.id).await? {
        if let Some(row) = store.catalog.sessions.get(id).await? {
            store.local_file(&row, &settings.dir).await?;
        }
    }
    Ok(())
}

/// Returns the bytes of a session file that is not compressed, after reading one that is.
fn text_bytes(source: &SessionInput) -> std::io::Result<u64> {
    match source {
        SessionInput::Plain(file) => Ok(file.metadata()?.len()),
        SessionInput::Gzip(gzip) => std::io::copy(&mut gzip.reader(), &mut std::io::sink()),
    }
}

/// Member paths with the paths of their files.
type MemberFiles = Vec<(String, PathBuf)>;

/// Lists the sessions and docs of an agent, sorted by name, and warnings about files that an archive cannot contain.
/// Blocks.
fn list_files(dir: &Path) -> std::io::Result<(MemberFiles, MemberFiles, Vec<String>)> {
    let (mut sessions, mut docs, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    collect_files(&dir.join("sessions"), agent_archive::SESSIONS_PREFIX, 0, &mut sessions, &mut Vec::new())?;
    collect_files(&dir.join("docs"), agent_archive::DOCS_PREFIX, MAX_DOCS_DEPTH, &mut docs, &mut left_out)?;
    sessions.sort();
    docs.sort();
    Ok((sessions, docs, left_out))
}

fn collect_files(
    dir: &Path,
    prefix: &str,
    deep: usize,
    found: &mut MemberFiles,
    left_out: &mut Vec<String>,
) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let mut path = format!("{prefix}{}", name.to_string_lossy());
        // An archive has sessions as every version reads them.
        if prefix == agent_archive::SESSIONS_PREFIX
            && let Some((session, SessionForm::Compressed)) = name.to_str().and_then(parse_file_name)
        {
            path = format!("{prefix}{session}.json");
            if dir.join(format!("{session}.json")).symlink_metadata().is_ok() {
                continue;
            }
        }
        if kind.is_dir() && deep > 0 {
            collect_files(&entry.path(), &format!("{path}/"), deep - 1, found, left_out)?;
        } else if kind.is_file() && name.to_str().is_some() && agent_archive::is_valid_member_path(&path) {
            found.push((path, entry.path()));
        } else {
            left_out.push(format!("not exported: {path}"));
        }
    }
    Ok(())
}

/// Encodes memories as JSON lines.
fn memory_lines(memories: &[MemoryRow]) -> Vec<u8> {
    let mut lines = Vec::new();
    for row in memories {
        // Serialising texts, times and ids into memory cannot fail.
        if serde_json::to_writer(&mut lines, row).is_ok() {
            lines.push(b'\n');
        }
    }
    lines
}

/// Reads a file from its start without using its cursor.
struct FileReader<'a>(&'a File, u64);

impl std::io::Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read_at(buffer, self.1)?;
        self.1 += count as u64;
        Ok(count)
    }
}
