//! Resolves agents with their current agent.json, which is reloaded when it has changed on disk.

use std::path::PathBuf;
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_catalog::AgentTable;
use chorus_config::agent::{AGENT_FILE, AgentConfig};
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use chorus_store::session_files::stamp;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::KeyedMutex;
use crate::agent::agent_index::{AgentEntry, AgentIndex};
use crate::agent::registry::Registry;
use crate::approvals::Approvals;
use crate::capture::CaptureService;
use crate::ops::agent::AgentClaims;
use crate::ops::approvals::deny_outdated;
use crate::ops::conversations::StartingConversations;
use crate::ops::discord::DiscordHandle;
use crate::ops::resolve_agent::{check_expected_agent, no_agent_error, unknown_agent_error};
use crate::ops::settings::EffectiveConfig;

/// Finds the agents that requests name, and keeps their entries in the index up to their files.
#[derive(Debug)]
pub struct AgentResolver {
    pub index: Arc<AgentIndex>,
    pub claims: Arc<AgentClaims>,
    pub table: Arc<dyn AgentTable>,
    pub home: PathBuf,
    pub config: Arc<EffectiveConfig>,
    pub approvals: Arc<Approvals>,
    pub discord: Arc<DiscordHandle>,
    /// Serialises creating, renaming and destroying agents.
    pub lock: Mutex<()>,
    pub registry: Arc<Registry>,
    /// Serialises creating, renaming, opening and closing conversations of an agent.
    pub conversation_locks: KeyedMutex<Uuid>,
    pub starting_conversations: StartingConversations,
    pub capture: Arc<CaptureService>,
}

impl AgentResolver {
    /// Returns the agent called `name`, or the implied agent if there is no name.
    ///
    /// # Errors
    /// `agent_not_found`, or `no_agent` with a list of the agents.
    pub async fn resolve(&self, name: Option<&str>) -> Result<Arc<AgentEntry>> {
        let entry = match name {
            Some(name) => match self.index.by_name(name).filter(|entry| self.claims.has(entry.settings.id)) {
                Some(entry) => entry,
                None => self.claims.find(name).await?.ok_or_else(|| unknown_agent_error(&self.index, name))?,
            },
            None => match self.claims.default_agent().await? {
                Some(entry) => entry,
                None => self.index.default_agent().ok_or_else(|| no_agent_error(&self.index, self.capture.is_on()))?,
            },
        };
        check_expected_agent(self.reload_if_changed(entry).await?)
    }

    /// Like [`AgentResolver::resolve`], for requests that only concern saved sessions: if there are only imported ones,
    /// their agent is the implied one.
    pub async fn resolve_for_sessions(&self, name: Option<&str>) -> Result<Arc<AgentEntry>> {
        if name.is_none()
            && self.index.own_names().is_empty()
            && let Some(first) = self.index.import_agents().into_iter().next()
        {
            return check_expected_agent(self.reload_if_changed(first).await?);
        }
        self.resolve(name).await
    }

    /// Returns the agent with this id, whatever its name is now; fails with `agent_not_found`.
    pub async fn resolve_by_id(&self, id: Uuid) -> Result<Arc<AgentEntry>> {
        let known = self.index.by_id(id).filter(|_| self.claims.has(id));
        let known = match known {
            Some(entry) => Some(entry),
            None => self.claims.find_by_id(id).await?,
        };
        let entry = known.ok_or_else(|| {
            Error::new(ErrorKind::AgentNotFound, "the agent no longer exists").hint("list agents with `/agent list`")
        })?;
        self.reload_if_changed(entry).await
    }

    /// Returns all agents, sorted by name.
    pub async fn all(&self) -> Result<Vec<Arc<AgentEntry>>> {
        self.reload_all(self.all_as_known().await?).await
    }

    /// Returns all agents, sorted by name, as they were when their files were last read.
    pub async fn all_as_known(&self) -> Result<Vec<Arc<AgentEntry>>> {
        let mut all = self.index.all();
        let others = self.claims.others().await?;
        if !others.is_empty() {
            all.extend(others);
            all.sort_by(|one, other| one.settings.name.cmp(&other.settings.name));
        }
        Ok(all)
    }

    /// Returns the agent with its current agent.json. If the file cannot be used, the entry reports the problem, and the
    /// last good configuration stays in force.
    pub async fn reload_if_changed(&self, entry: Arc<AgentEntry>) -> Result<Arc<AgentEntry>> {
        if !self.claims.has(entry.settings.id) || check_stamp(&entry).1 {
            return Ok(entry);
        }
        // While another operation creates, changes, moves or destroys an agent, its file must not be read; the next request
        // checks again.
        let Ok(_alone) = self.lock.try_lock() else { return Ok(entry) };
        match self.index.by_id(entry.settings.id) {
            Some(entry) => self.reload_locked(entry).await,
            None => Ok(entry),
        }
    }

    /// Like [`AgentResolver::reload_if_changed`]; the caller must hold the agents lock.
    pub async fn reload_locked(&self, entry: Arc<AgentEntry>) -> Result<Arc<AgentEntry>> {
        match check_stamp(&entry) {
            (_, true) => Ok(entry),
            (now, false) => self.reload(entry, now).await,
        }
    }

    /// Like [`AgentResolver::reload_if_changed`], for many agents.
    pub async fn reload_all(&self, entries: Vec<Arc<AgentEntry>>) -> Result<Vec<Arc<AgentEntry>>> {
        let mut fresh = Vec::with_capacity(entries.len());
        for entry in entries {
            fresh.push(self.reload_if_changed(entry).await?);
        }
        Ok(fresh)
    }

    fn reload<'a>(&'a self, entry: Arc<AgentEntry>, stamp: String) -> BoxFuture<'a, Result<Arc<AgentEntry>>> {
        Box::pin(async move {
            let path = entry.settings.dir.join(AGENT_FILE);
            let defaults = self.config.current();
            let id = entry.settings.id;
            // If the previous permissions were unusable too, unusable ones are accepted.
            let lenient = entry.settings.profile.is_err();
            let config = run_blocking(move || {
                Ok(std::fs::read_to_string(&path)
                    .map_err(|e| format!("cannot be read: {e}"))
                    .and_then(|text| AgentConfig::parse(&text, &defaults))
                    .and_then(|config| match &config.profile {
                        Err(problem) if !lenient => Err(problem.clone()),
                        _ => Ok(config),
                    })
                    .and_then(
                        |config| if config.id == id { Ok(config) } else { Err("has another agent's `id`".to_owned()) },
                    ))
            })
            .await?;
            let name = entry.settings.name.clone();
            match config {
                Ok(config) => {
                    let dir = entry.settings.dir.strip_prefix(&self.home).unwrap_or(&entry.settings.dir);
                    let mut row = super::agent_row(&dir.to_string_lossy(), &config, stamp.clone());
                    // Only `agent config NAME name NEW` changes the name, because it also moves the directory.
                    row.name.clone_from(&name);
                    let problem = (config.name != name).then(|| {
                        format!(
                            "agent.json contains the name {:?}; to rename: chorusctl agent config {name} name NEW",
                            config.name
                        )
                    });
                    self.table.upsert(row).await?;
                    let mut new = super::agent_entry(&self.home, &dir.to_string_lossy(), &config, stamp);
                    new.settings = Arc::new(AgentSettings { name, ..(*new.settings).clone() });
                    new.config_problem = problem.or(new.config_problem);
                    tracing::info!(agent = %new.settings.name, "reloaded agent.json");
                    let new = self.index.insert(new);
                    super::discord_channel::sync_if_changed(&self.discord, Some(&entry), &new);
                    deny_outdated(&self.index, &self.approvals, &entry).await;
                    Ok(new)
                }
                Err(problem) => {
                    tracing::warn!(agent = %name, problem, "agent.json is invalid; keeping the last good version");
                    let problem = Some(format!("agent.json {problem}; the last good version stays in effect"));
                    Ok(self.index.insert(AgentEntry {
                        config_stamp: stamp,
                        config_problem: problem,
                        ..(*entry).clone()
                    }))
                }
            }
        })
    }
}

/// Returns the stamp of agent.json, and true if it is the known one. It costs one `stat`, cheap enough for every
/// request.
fn check_stamp(entry: &AgentEntry) -> (String, bool) {
    let path = entry.settings.dir.join(AGENT_FILE);
    let now = std::fs::metadata(&path).map_or_else(|e| e.kind().to_string(), |metadata| stamp(&metadata));
    let same = now == entry.config_stamp;
    (now, same)
}
