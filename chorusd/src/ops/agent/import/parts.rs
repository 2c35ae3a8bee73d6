//! What an archive says, checked, and its files.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::MemorySource;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::archive::{self, Archive, BadArchive};
use crate::config::Config;
use crate::config::agent::{AgentConfig, check_name};
use crate::failure::{Failure, Result};
use crate::ops::agent::init::put_config;
use crate::ops::agent::workspace::BUNDLE;
use crate::store::agents_dir::create_private;
use crate::store::catalog::{MemoryRow, memory};
use crate::store::session_files;

/// Bytes of agent.json, and of all that an agent remembers.
const LONGEST_CONFIG: u64 = 4 << 20;
const LONGEST_MEMORY: u64 = 32 << 20;
/// Bytes of who a person is, and of a message's id.
const LONGEST_WORD: usize = 256;
/// Bytes of the disk that an import leaves to others.
const SPARED: u64 = 64 << 20;

/// An agent that is to be made.
#[derive(Debug)]
pub struct Plan {
    pub config: AgentConfig,
    /// The id that it has in the archive.
    pub was: Uuid,
    pub memories: Vec<MemoryRow>,
    pub sessions: u64,
}

impl Plan {
    /// What the archive says; `name` is the agent's name here. Blocks.
    ///
    /// # Errors
    /// `invalid_params`, `invalid_name`, `invalid_config`.
    pub fn of(archive: &Archive, name: Option<String>, defaults: &Config) -> Result<Self> {
        for needed in [archive::AGENT, archive::WORKSPACE] {
            if !archive.has(needed) {
                return Err(unusable(BadArchive::Missing(needed.into())));
            }
        }
        let name = name.unwrap_or_else(|| archive.manifest.agent.name.clone());
        check_name(&name)?;
        let text = archive.text(archive::AGENT, LONGEST_CONFIG).map_err(unusable)?;
        let invalid = |e: String| {
            Failure::new(ErrorKind::InvalidConfig, format!("agent.json in the archive {e}"))
                .hint("nothing was imported")
        };
        let mut map: Map<String, Value> =
            serde_json::from_str(&text).map_err(|e| invalid(format!("is no JSON object: {e}")))?;
        map.insert("name".into(), name.into());
        // Those are of the home that it came from.
        for key in ["channel_id", "guild_id"] {
            map.insert(key.into(), Value::Null);
        }
        map.insert("running_tasks".into(), Value::Array(Vec::new()));
        let config = AgentConfig::from_map(map, defaults).map_err(invalid)?;
        let sessions = archive.manifest.members.iter().filter(|member| member.path.starts_with(archive::SESSIONS));
        let (was, sessions) = (config.id, sessions.count() as u64);
        let memories = memories(archive, &config)?;
        Ok(Self { config, was, memories, sessions })
    }

    /// Gives the agent another id.
    ///
    /// # Errors
    /// None: what was good is so with another id.
    pub fn renew(&mut self, defaults: &Config) -> Result<()> {
        let mut map = self.config.map().clone();
        map.insert("id".into(), Uuid::new_v4().to_string().into());
        self.config = AgentConfig::from_map(map, defaults).map_err(Failure::internal)?;
        Ok(())
    }
}

/// What the archive says is remembered, as the imported agent could have written it: under its name, by its tool, for its own project.
fn memories(archive: &Archive, config: &AgentConfig) -> Result<Vec<MemoryRow>> {
    let now = Timestamp::now();
    let text = archive.text(archive::MEMORY, LONGEST_MEMORY).map_err(unusable)?;
    let row = |(at, line): (usize, &str)| {
        let wrong = |why: String| unusable(BadArchive::Foreign(format!("{} line {}: {why}", archive::MEMORY, at + 1)));
        let row: MemoryRow = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
        let text = memory::text(&row.text).map_err(wrong)?;
        let path = memory::path(row.path.as_deref()).map_err(wrong)?;
        let short = |text: &str| text.len() <= LONGEST_WORD && !text.chars().any(char::is_control);
        if !short(&row.user) || !row.message.as_deref().is_none_or(short) {
            return Err(wrong("its user or message is none".into()));
        }
        let (agent_name, at) = (config.name.clone(), row.at.min(now));
        Ok(MemoryRow { agent: config.id, agent_name, text, path, at, source: MemorySource::Tool, ..row })
    };
    let ours = |row: &Result<MemoryRow>| {
        row.as_ref().map_or(true, |row| row.project.is_none() || row.project == config.project)
    };
    text.lines().enumerate().map(row).filter(ours).collect()
}

/// Why nothing was imported.
pub fn unusable(why: BadArchive) -> Failure {
    let what = format!("the archive cannot be used: {why}");
    match why {
        BadArchive::Io(e) => Failure::io("the archive cannot be used", &e),
        BadArchive::Newer(_) => {
            Failure::new(ErrorKind::Unsupported, what).hint("import it with the newer chorusd that wrote it")
        }
        _ => Failure::invalid(what).hint("nothing was imported; `chorusctl agent export` makes archives"),
    }
}

/// Writes what is in the archive into `dir`, the workspace still as a bundle; answers the stamp of agent.json. Blocks.
///
/// # Errors
/// What the disk says.
pub fn unpack(archive: &Archive, dir: &Path, config: &AgentConfig) -> Result<String> {
    let failed = |e: std::io::Error| Failure::io("cannot write the agent's files", &e);
    if archive.size() > room(dir)? {
        return Err(Failure::disk_full());
    }
    for part in ["docs", "sessions", "workspace/.git"] {
        create_private(&dir.join(part)).map_err(failed)?;
    }
    for member in &archive.manifest.members {
        let target = match member.path.as_str() {
            archive::AGENT | archive::MEMORY => continue,
            archive::WORKSPACE => dir.join("workspace").join(BUNDLE),
            path => dir.join(path),
        };
        create_private(target.parent().unwrap_or(dir)).map_err(failed)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        archive.copy(&member.path, &mut out).and_then(|()| out.flush()).map_err(failed)?;
    }
    put_config(dir, config).map_err(failed)
}

/// Bytes that an import may still write where `dir` is.
///
/// # Errors
/// What the system says.
pub fn room(dir: &Path) -> Result<u64> {
    let there = rustix::fs::statvfs(dir).map_err(|e| Failure::io("cannot see how much room there is", &e.into()))?;
    Ok(there.f_bavail.saturating_mul(there.f_frsize).saturating_sub(SPARED))
}

/// Brings all that was written below `dir` to the disk. Blocks.
///
/// # Errors
/// What the system says.
pub fn sync(dir: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Failure::io("cannot bring the agent to the disk", &e);
    let file = File::open(dir).map_err(failed)?;
    session_files::synced(rustix::fs::syncfs(&file).map_err(Into::into)).map_err(failed)
}
