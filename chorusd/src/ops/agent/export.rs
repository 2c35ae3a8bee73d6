//! `agent.export.*`.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::methods::archive::{ExportBeginParams, ExportBeginResult, ExportReadParams, ExportReadResult};
use chorus_proto::{ErrorKind, Session};
use serde_json::Value;

use super::config::in_force;
use super::workspace;
use crate::agent::Facts;
use crate::agent::event::{Reply, Verb};
use crate::archive::{self, Manifest, Origin, Writer};
use crate::config::agent::render;
use crate::failure::{Failure, Result};
use crate::ops::import_sink::spool;
use crate::ops::session::import::OnProgress;
use crate::ops::{Ops, blocking, select};
use crate::store::catalog::MemoryRow;

/// Bytes in one answer, before they are base64.
const PIECE: usize = 1 << 20;
/// Folders of docs/ inside each other.
const DEEPEST: usize = 32;

/// Makes the file of an agent: configuration, notes, sessions, what it remembers, its workspace. Unsaved messages are saved first, so that all
/// that was said is in it.
///
/// # Errors
/// `agent_not_found`, `git_failed`, `busy`, `disk_full`, `storage_failed`.
pub async fn begin(
    ops: &Ops,
    connection: u64,
    params: ExportBeginParams,
    mut progress: OnProgress,
) -> Result<ExportBeginResult> {
    let agent = select::agent(ops, Some(&params.name)).await?;
    let saved = save(ops, &agent.facts).await?;
    let dir = ops.home.join("db");
    let (bundle, file) = blocking(move || {
        let new = || spool(&dir).map_err(|e| Failure::io("cannot begin an export", &e));
        Ok((new()?, new()?))
    })
    .await?;
    let mut warnings = {
        let _alone = ops.registry.world.git.of(agent.facts.id).await;
        workspace::pack(ops, &agent.facts.dir.join("workspace"), &bundle).await?
    };
    // From here on none of its files moves or goes.
    let _stays = ops.sessions_lock.read().await;
    let agent = ops.directory.by_id(agent.facts.id).ok_or_else(|| select::unknown_agent(ops, &params.name))?;
    let facts = agent.facts.clone();
    let (config, _) = in_force(ops, &agent).await?;
    let memories = ops.store.catalog.memories_by(facts.id).await?;
    let mut config = config.map().clone();
    // Those are of this home: its channels, and what runs in it.
    for key in ["channel_id", "guild_id"] {
        config.insert(key.into(), Value::Null);
    }
    config.insert("running_tasks".into(), Value::Array(Vec::new()));
    let (now, count) = (ops.clock.now(), memories.len() as u64);
    let name = facts.name.clone();
    let (file, size, sessions, left_out) = blocking(move || {
        let failed = |e: std::io::Error| Failure::io(format_args!("cannot export {}", facts.name), &e);
        let (sessions, docs, left_out) = files(&facts.dir).map_err(failed)?;
        let mut writer = Writer::new(BufWriter::with_capacity(PIECE, file));
        let mut add = |path: &str, bytes: &[u8]| writer.add(path, bytes.len() as u64, bytes);
        add(archive::AGENT, render(&config).as_bytes()).map_err(failed)?;
        add(archive::MEMORY, &lines(&memories)).map_err(failed)?;
        let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let size = bundle.metadata().map_err(failed)?.len();
        let (mut done, all) = (0, size + docs.iter().chain(&sessions).map(|(_, file)| length(file)).sum::<u64>());
        for (path, file) in docs.iter().chain(&sessions) {
            let source = File::open(file).map_err(failed)?;
            let size = source.metadata().map_err(failed)?.len();
            writer.add(path, size, source).map_err(failed)?;
            done += size;
            progress(done, all);
        }
        writer.add(archive::WORKSPACE, size, FromStart(&bundle, 0)).map_err(failed)?;
        let agent = Origin { id: facts.id, name: facts.name.clone() };
        let chorus = env!("CARGO_PKG_VERSION").to_owned();
        let manifest = |members| Manifest { schema: archive::SCHEMA, chorus, exported_at: now, agent, members };
        let mut out = writer.finish(manifest).map_err(failed)?;
        out.flush().map_err(failed)?;
        let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
        let size = file.metadata().map_err(failed)?.len();
        Ok((file, size, sessions.len() as u64, left_out))
    })
    .await?;
    warnings.extend(left_out);
    tracing::info!(agent = %name, size, sessions, "agent exported");
    let export = ops.agents_out.open(connection, (), file)?;
    Ok(ExportBeginResult { export, size, agent_name: name, sessions, memories: count, saved, warnings })
}

/// A piece of the file.
///
/// # Errors
/// `not_found`, `storage_failed`.
pub async fn read(ops: &std::sync::Arc<Ops>, connection: u64, params: ExportReadParams) -> Result<ExportReadResult> {
    let ops = ops.clone();
    let room = PIECE.min(ops.config.max_frame / 2);
    blocking(move || {
        ops.agents_out.with(connection, params.export, |spool| {
            let failed = |e: std::io::Error| Failure::io("cannot read an export", &e);
            let size = spool.file.metadata().map_err(failed)?.len();
            let offset = params.offset.unwrap_or(0).min(size);
            let mut piece = vec![0; usize::try_from(size - offset).unwrap_or(room).min(room)];
            spool.file.read_exact_at(&mut piece, offset).map_err(failed)?;
            let end = offset + piece.len() as u64;
            Ok(ExportReadResult { data_base64: STANDARD.encode(piece), next: (end < size).then_some(end) })
        })
    })
    .await
}

/// A checkpoint of what no session holds.
async fn save(ops: &Ops, facts: &Facts) -> Result<Option<Session>> {
    if ops.registry.info(facts.id).is_none_or(|context| context.unsaved == 0) {
        return Ok(None);
    }
    let verb = Verb::Save { description: None, tags: Vec::new(), clear: false };
    match ops.registry.ask(facts.id, verb).await.map(|answer| answer.reply) {
        Ok(Reply::Saved { session, .. }) => Ok(Some(*session)),
        Ok(_) => Err(Failure::internal("an agent gave the answer to another question")),
        // Somebody else was faster.
        Err(failure) if failure.kind == ErrorKind::NothingToSave => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Members and where their files are.
type Files = Vec<(String, PathBuf)>;

/// Sessions and notes of an agent, in the order of their names, and what of it has no place in an archive. Blocks.
fn files(dir: &Path) -> std::io::Result<(Files, Files, Vec<String>)> {
    let (mut sessions, mut docs, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    walk(&dir.join("sessions"), archive::SESSIONS, 0, &mut sessions, &mut Vec::new())?;
    walk(&dir.join("docs"), archive::DOCS, DEEPEST, &mut docs, &mut left_out)?;
    sessions.sort();
    docs.sort();
    Ok((sessions, docs, left_out))
}

fn walk(dir: &Path, prefix: &str, deep: usize, found: &mut Files, left_out: &mut Vec<String>) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let path = format!("{prefix}{}", name.to_string_lossy());
        if kind.is_dir() && deep > 0 {
            walk(&entry.path(), &format!("{path}/"), deep - 1, found, left_out)?;
        } else if kind.is_file() && name.to_str().is_some() && archive::has_place(&path) {
            found.push((path, entry.path()));
        } else {
            left_out.push(format!("not carried over: {path}"));
        }
    }
    Ok(())
}

/// One entry a line.
fn lines(memories: &[MemoryRow]) -> Vec<u8> {
    let mut lines = Vec::new();
    for row in memories {
        // Texts, times and ids always serialise, and memory takes them all.
        if serde_json::to_writer(&mut lines, row).is_ok() {
            lines.push(b'\n');
        }
    }
    lines
}

/// A file read from its start, wherever it stands.
struct FromStart<'a>(&'a File, u64);

impl std::io::Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read_at(buffer, self.1)?;
        self.1 += count as u64;
        Ok(count)
    }
}
