//! Changes agent.json, and with it the row and the index entry of the agent.

use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::FileSnapshot;
use chorus_catalog::AuditDecision;
use chorus_clock::Clock;
use chorus_config::agent::{AGENT_FILE, AgentConfig, PERMISSION_RULES_KEY, normalise};
use chorus_llm::Models;
use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::ConfigResult;
use chorus_runtime::run_blocking;
use chorus_store::Store;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::RwLock;

use super::config::effective_config;
use super::init::write_config;
use super::{AgentDescriber, AgentResolver, agent_entry, agent_row};
use crate::agent::agent_index::AgentEntry;
use crate::agent::registry::Registry;
use crate::capture::DeletedConversations;
use crate::ops::settings::EffectiveConfig;

/// The services that create, change and destroy agents. An operation that does so holds the lock of `agents`.
#[derive(Debug)]
pub struct AgentEditor {
    pub agents: Arc<AgentResolver>,
    pub describer: Arc<AgentDescriber>,
    pub registry: Arc<Registry>,
    pub models: Arc<Models>,
    pub store: Arc<Store>,
    pub config: Arc<EffectiveConfig>,
    /// Locked for writing while the directory of an agent moves.
    pub sessions_lock: Arc<RwLock<()>>,
    /// Keeps capture from bringing back the conversations of an agent that is destroyed.
    pub deleted: Arc<DeletedConversations>,
    pub clock: Clock,
}

impl AgentEditor {
    /// Sets the rules of an agent, which the caller has checked. The caller must hold the agents lock and have reloaded
    /// agent.json. If it fails, nothing has changed. See [`AgentEditor::set_key`] for `audit_row`.
    pub async fn set_rules(
        &self,
        agent: &Arc<AgentEntry>,
        rules: Value,
        audit_row: Option<AuditDecision>,
    ) -> Result<()> {
        self.set_checked(agent, PERMISSION_RULES_KEY, rules, audit_row).await.map(drop)
    }

    /// Sets one key; the caller must hold the agents lock. With `audit_row`, the change is recorded in the audit log
    /// first, and is not made if that fails.
    pub fn set_key<'a>(
        &'a self,
        agent: &'a Arc<AgentEntry>,
        key: String,
        value: Value,
        audit_row: Option<AuditDecision>,
    ) -> BoxFuture<'a, Result<ConfigResult>> {
        Box::pin(async move {
            let value = normalise(&key, value, &self.config.current().profiles)?;
            if let Some(model) = value.as_str().filter(|_| key == "model") {
                self.models.check_assignable(model)?;
            }
            let (new, config, old) = self.set_checked(agent, &key, value, audit_row).await?;
            if key == "idle_timeout" {
                self.registry.update_idle_timeouts(agent.settings.id).await;
            }
            let config = Map::from_iter([(key.clone(), config.map().get(&key).cloned().unwrap_or_default())]);
            Ok(ConfigResult { agent: self.describer.describe_changed(&new).await, config, old: Some(old) })
        })
    }

    /// Sets one key to a value that was checked.
    async fn set_checked(
        &self,
        agent: &Arc<AgentEntry>,
        key: &str,
        value: Value,
        audit_row: Option<AuditDecision>,
    ) -> Result<(Arc<AgentEntry>, AgentConfig, Value)> {
        let draft = self.draft_config(agent, vec![(key, value.clone())]).await?;
        let row = audit_row.map(|row| AuditDecision {
            old: Some(draft.old.to_string()),
            new: Some(value.to_string()),
            ..row
        });
        if let Some(row) = &row {
            self.store.catalog.audit.append(row.clone()).await?;
        }
        let done = self.apply_draft(agent, draft).await;
        if let (Err(failure), Some(row)) = (&done, row) {
            let row = AuditDecision {
                at: self.clock.now(),
                decision: "not_changed".into(),
                rule: failure.message.clone(),
                ..row
            };
            if let Err(failure) = self.store.catalog.audit.append(row).await {
                tracing::error!(agent = %agent.settings.name, %failure, "cannot record a failed change in the audit log");
            }
        }
        done
    }

    /// Writes a draft and puts it into effect, or restores the previous file.
    async fn apply_draft(
        &self,
        agent: &AgentEntry,
        draft: ConfigDraft,
    ) -> Result<(Arc<AgentEntry>, AgentConfig, Value)> {
        let WrittenConfig { file, previous_file: before, old } = write_draft(agent, draft).await?;
        match self.adopt_config(agent.settings.dir.clone(), file).await {
            Ok((entry, config)) => Ok((entry, config, old)),
            Err(failure) => {
                let undone = run_blocking(move || {
                    before.restore().map_err(|e| Error::io("cannot restore the previous agent.json", &e))
                });
                if let Err(undo) = undone.await {
                    tracing::error!(agent = %agent.settings.name, failure = %undo, "cannot undo a failed setting");
                }
                Err(failure)
            }
        }
    }

    /// Reads agent.json from disk and changes keys in memory. `old` is the previous value of the first key.
    pub(super) async fn draft_config(&self, agent: &AgentEntry, pairs: Vec<(&str, Value)>) -> Result<ConfigDraft> {
        if let Some(problem) = agent.config_problem.as_ref().filter(|problem| problem.contains("last good")) {
            return Err(Error::new(ErrorKind::InvalidConfig, problem.clone()).hint("repair agent.json first"));
        }
        let (path, defaults) = (agent.settings.dir.join(AGENT_FILE), self.agents.config.current());
        let pairs: Vec<(String, Value)> = pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        run_blocking(move || {
            let before = FileSnapshot::read(path.clone())
                .map_err(|e| Error::io(format_args!("cannot read {}", path.display()), &e))?;
            let mut map: Map<String, Value> = serde_json::from_str(&before.text)
                .map_err(|e| Error::new(ErrorKind::InvalidConfig, format!("agent.json is not a JSON object: {e}")))?;
            let mut previous = pairs.into_iter().map(|(key, value)| map.insert(key, value).unwrap_or_default());
            let old = previous.next().unwrap_or_default();
            previous.for_each(drop);
            let config = AgentConfig::from_map(map, &defaults)
                .map_err(|e| Error::new(ErrorKind::InvalidConfig, format!("agent.json {e}")))?;
            Ok(ConfigDraft { config, previous_file: before, old })
        })
        .await
    }

    /// Writes the agent's running tasks into agent.json; the caller must hold the agents lock. A file that lists them
    /// already is not touched.
    pub async fn write_running_tasks(&self, agent: &AgentEntry, running: Vec<Value>) -> Result<()> {
        let (config, _) = effective_config(&self.agents.table, &self.agents.config, agent).await?;
        let listed = config.map().get("running_tasks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if listed == running {
            return Ok(());
        }
        let rewritten = self.rewrite_key(agent, "running_tasks", running.into()).await?;
        self.adopt_config(agent.settings.dir.clone(), rewritten.file).await.map(drop)
    }

    /// Removes all running tasks from the agent.json of an agent that is about to be destroyed.
    pub async fn clear_running_tasks(&self, agent: &AgentEntry) -> Result<()> {
        self.rewrite_key(agent, "running_tasks", Value::Array(Vec::new())).await.map(drop)
    }

    /// Changes one key of agent.json on disk.
    async fn rewrite_key(&self, agent: &AgentEntry, key: &str, value: Value) -> Result<WrittenConfig> {
        write_draft(agent, self.draft_config(agent, vec![(key, value)]).await?).await
    }

    /// Sets several keys at once, whose values the caller has checked; the caller must hold the agents lock. Returns the
    /// previous value of the first key. If it fails, nothing has changed.
    pub(super) async fn set_keys(
        &self,
        agent: &AgentEntry,
        pairs: Vec<(&str, Value)>,
    ) -> Result<(Arc<AgentEntry>, AgentConfig, Value)> {
        self.apply_draft(agent, self.draft_config(agent, pairs).await?).await
    }

    /// Puts a configuration that is on disk into the catalog and the agent index.
    pub(super) async fn adopt_config(
        &self,
        dir: PathBuf,
        (config, stamp): (AgentConfig, String),
    ) -> Result<(Arc<AgentEntry>, AgentConfig)> {
        let relative = dir.strip_prefix(&self.agents.home).unwrap_or(&dir).to_string_lossy().into_owned();
        self.store.catalog.agents.upsert(agent_row(&relative, &config, stamp.clone())).await?;
        Ok((self.agents.index.insert(agent_entry(&self.agents.home, &relative, &config, stamp)), config))
    }
}

/// An agent.json in which one key is to be changed.
pub(super) struct ConfigDraft {
    pub config: AgentConfig,
    pub previous_file: FileSnapshot,
    /// The previous value.
    old: Value,
}

/// An agent.json in which one key was changed.
struct WrittenConfig {
    /// The configuration with the stamp of the file.
    file: (AgentConfig, String),
    previous_file: FileSnapshot,
    /// The previous value.
    old: Value,
}

async fn write_draft(
    agent: &AgentEntry,
    ConfigDraft { config, previous_file: before, old }: ConfigDraft,
) -> Result<WrittenConfig> {
    let dir = agent.settings.dir.clone();
    run_blocking(move || {
        let stamp = write_config(&dir, &config)
            .map_err(|e| Error::io(format_args!("cannot write {}", dir.join(AGENT_FILE).display()), &e))?;
        Ok(WrittenConfig { file: (config, stamp), previous_file: before, old })
    })
    .await
}
