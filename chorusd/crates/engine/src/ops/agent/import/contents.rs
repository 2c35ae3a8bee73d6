//! Reads the contents of an agent archive, checks them, and writes its files.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{create_private, map_sync_error};
use chorus_catalog::{MemoryRow, ScheduleRow, memories};
use chorus_config::Config;
use chorus_config::agent::{AgentConfig, check_name};
use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::MemorySource;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::agent_archive::{self, Archive, ArchiveError};
use crate::ops::agent::init::write_config;
use crate::ops::agent::workspace_bundle::BUNDLE_PATH;
use crate::ops::schedule::add::MAX_SCHEDULES;
use crate::ops::schedule::transfer::parse_schedule;

/// Limits in bytes: of agent.json, of all memories, and of all schedules.
const MAX_CONFIG_BYTES: u64 = 4 << 20;
const MAX_MEMORY_BYTES: u64 = 32 << 20;
const MAX_SCHEDULE_BYTES: u64 = 16 << 20;
/// The limit in bytes of a user's identity and of a message id.
const MAX_ID_BYTES: usize = 256;
/// Free disk space in bytes that an import leaves to others.
const RESERVED_DISK_BYTES: u64 = 64 << 20;

/// An agent that is to be created.
#[derive(Debug)]
pub(super) struct ImportPlan {
    pub config: AgentConfig,
    /// The agent's id in the archive.
    pub archived_id: Uuid,
    pub memories: Vec<MemoryRow>,
    pub schedules: Vec<ScheduleRow>,
    pub sessions: u64,
}

impl ImportPlan {
    /// Reads the archive; `name` replaces the agent's name. Blocks.
    pub(super) fn from_archive(archive: &Archive, name: Option<String>, defaults: &Config) -> Result<Self> {
        for needed in [agent_archive::AGENT_MEMBER, agent_archive::WORKSPACE_MEMBER] {
            if !archive.contains(needed) {
                return Err(archive_error(ArchiveError::Unlisted(needed.into())));
            }
        }
        let name = name.unwrap_or_else(|| archive.manifest.agent.name.clone());
        check_name(&name)?;
        let text = archive.read_text(agent_archive::AGENT_MEMBER, MAX_CONFIG_BYTES).map_err(archive_error)?;
        let invalid = |e: String| {
            Error::new(ErrorKind::InvalidConfig, format!("agent.json in the archive {e}")).hint("nothing was imported")
        };
        let mut map: Map<String, Value> =
            serde_json::from_str(&text).map_err(|e| invalid(format!("is not a JSON object: {e}")))?;
        map.insert("name".into(), name.into());
        // These keys refer to the home that the archive comes from.
        for key in ["channel_id", "guild_id"] {
            map.insert(key.into(), Value::Null);
        }
        map.insert("running_tasks".into(), Value::Array(Vec::new()));
        let config = AgentConfig::from_map(map, defaults).map_err(invalid)?;
        let sessions =
            archive.manifest.members.iter().filter(|member| member.path.starts_with(agent_archive::SESSIONS_PREFIX));
        let (was, sessions) = (config.id, sessions.count() as u64);
        let memories = parse_memories(archive, &config)?;
        let schedules = parse_schedules(archive, config.id)?;
        Ok(Self { config, archived_id: was, memories, schedules, sessions })
    }

    /// Assigns a new id to the agent. It cannot fail, because a valid configuration stays valid with another id.
    pub(super) fn assign_new_id(&mut self, defaults: &Config) -> Result<()> {
        let mut map = self.config.map().clone();
        map.insert("id".into(), Uuid::new_v4().to_string().into());
        self.config = AgentConfig::from_map(map, defaults).map_err(Error::internal)?;
        Ok(())
    }
}

/// Reads the memories of the archive as the imported agent could have written them: under its name, by its tool, for
/// its own project.
fn parse_memories(archive: &Archive, config: &AgentConfig) -> Result<Vec<MemoryRow>> {
    let now = Timestamp::now();
    let text = archive.read_text(agent_archive::MEMORY_MEMBER, MAX_MEMORY_BYTES).map_err(archive_error)?;
    let row = |(at, line): (usize, &str)| {
        let wrong = |why: String| {
            archive_error(ArchiveError::NotAnArchive(format!(
                "{} line {}: {why}",
                agent_archive::MEMORY_MEMBER,
                at + 1
            )))
        };
        let row: MemoryRow = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
        let text = memories::validate_text(&row.text).map_err(wrong)?;
        let path = memories::validate_path(row.path.as_deref()).map_err(wrong)?;
        let short = |text: &str| text.len() <= MAX_ID_BYTES && !text.chars().any(char::is_control);
        if !short(&row.user) || !row.message.as_deref().is_none_or(short) {
            return Err(wrong("invalid `user` or `message`".into()));
        }
        let (agent_name, at) = (config.name.clone(), row.at.min(now));
        Ok(MemoryRow { agent: config.id, agent_name, text, path, at, source: MemorySource::Tool, ..row })
    };
    let ours = |row: &Result<MemoryRow>| {
        row.as_ref().map_or(true, |row| row.project.is_none() || row.project == config.project)
    };
    text.lines().enumerate().map(row).filter(ours).collect()
}

/// Reads the schedules of the archive, which are paused.
fn parse_schedules(archive: &Archive, agent: Uuid) -> Result<Vec<ScheduleRow>> {
    if !archive.contains(agent_archive::SCHEDULES_MEMBER) {
        return Ok(Vec::new());
    }
    let now = Timestamp::now();
    let text = archive.read_text(agent_archive::SCHEDULES_MEMBER, MAX_SCHEDULE_BYTES).map_err(archive_error)?;
    let wrong = |at: usize, why: String| {
        let member = agent_archive::SCHEDULES_MEMBER;
        archive_error(ArchiveError::NotAnArchive(format!("{member} line {}: {why}", at + 1)))
    };
    let mut rows: Vec<ScheduleRow> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let row = parse_schedule(line, agent, now).map_err(|why| wrong(at, why))?;
        if rows.iter().any(|other| other.name == row.name) {
            return Err(wrong(at, format!("the name {} is there twice", row.name)));
        }
        if rows.len() >= MAX_SCHEDULES as usize {
            return Err(wrong(at, format!("more than {MAX_SCHEDULES} schedules")));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Converts the reason why an archive cannot be used.
pub(super) fn archive_error(why: ArchiveError) -> Error {
    let what = format!("invalid archive: {why}");
    match why {
        ArchiveError::Io(e) => Error::io("invalid archive", &e),
        ArchiveError::NewerSchema(_) => {
            Error::new(ErrorKind::Unsupported, what).hint("upgrade Chorus to the version that exported it")
        }
        _ => Error::invalid(what).hint("nothing was imported; create an archive with `chorusctl agent export`"),
    }
}

/// Writes the archive's files into `dir`, the workspace still as a bundle. Returns the stamp of agent.json. Blocks.
pub(super) fn unpack_files(archive: &Archive, dir: &Path, config: &AgentConfig) -> Result<String> {
    let failed = |e: std::io::Error| Error::io("cannot write the agent's files", &e);
    if archive.size() > available_bytes(dir)? {
        return Err(Error::disk_full());
    }
    for part in ["docs", "sessions", "workspace/.git"] {
        create_private(&dir.join(part)).map_err(failed)?;
    }
    for member in &archive.manifest.members {
        let target = match member.path.as_str() {
            agent_archive::AGENT_MEMBER | agent_archive::MEMORY_MEMBER | agent_archive::SCHEDULES_MEMBER => continue,
            agent_archive::WORKSPACE_MEMBER => dir.join("workspace").join(BUNDLE_PATH),
            path => dir.join(path),
        };
        create_private(target.parent().unwrap_or(dir)).map_err(failed)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        archive.copy_member(&member.path, &mut out).and_then(|()| out.flush()).map_err(failed)?;
    }
    write_config(dir, config).map_err(failed)
}

/// Returns how many bytes an import may still write to the file system of `dir`.
pub(super) fn available_bytes(dir: &Path) -> Result<u64> {
    let there = rustix::fs::statvfs(dir).map_err(|e| Error::io("cannot determine the free disk space", &e.into()))?;
    Ok(there.f_bavail.saturating_mul(there.f_frsize).saturating_sub(RESERVED_DISK_BYTES))
}

/// Syncs the file system of `dir`. Blocks.
pub(super) fn sync_files(dir: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::io("cannot write the agent to disk", &e);
    let file = File::open(dir).map_err(failed)?;
    map_sync_error(rustix::fs::syncfs(&file).map_err(Into::into)).map_err(failed)
}
