//! The operations `config.*`: the configuration file of a running daemon.

mod hidden_paths;
pub mod reload;
pub mod set;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_clock::Clock;
use chorus_config::{Config, changed_keys};
use chorus_llm::Models;
use chorus_proto::EventType;
use chorus_runtime::{SpawnTracked as _, run_blocking};
use chorus_sandbox::Sandbox;
use chorus_store::Store;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

pub use self::hidden_paths::hidden_paths;
use super::agent::AgentResolver;
use super::cluster::publish_profile_hash;
use super::settings::EffectiveConfig;
use super::settings::set::{apply_to_agents, audit_row};
use crate::agent::registry::Registry;
use crate::approvals::Approvals;

/// The services that a reload of the configuration reaches.
#[derive(Debug)]
pub struct ConfigReloader {
    pub effective: Arc<EffectiveConfig>,
    pub agents: Arc<AgentResolver>,
    pub models: Arc<Models>,
    pub approvals: Arc<Approvals>,
    pub registry: Arc<Registry>,
    pub sandbox: Arc<Sandbox>,
    pub store: Arc<Store>,
    pub clock: Clock,
    pub socket: PathBuf,
    pub tasks: TaskTracker,
    /// The configuration as it was last read; `None` until it is read again.
    pub last_read: Mutex<Option<Config>>,
}

/// Keys that a reload concerns.
#[derive(Debug)]
struct Applied {
    changed: Vec<String>,
    restart: Vec<String>,
}

impl ConfigReloader {
    /// Reads the configuration again and applies it. The caller holds the lock of the file. The audit log names `command` for each key that
    /// is another one, except `recorded`, which has its row.
    ///
    /// # Errors
    /// The configuration cannot be used; then the daemon keeps the one that it has.
    async fn reload(&self, command: &str, recorded: Option<&str>) -> Result<Applied> {
        let new = match self.effective.read_again().await {
            Ok(new) => new,
            Err(mut failure) => {
                failure.message += "; the daemon keeps the configuration that it has";
                tracing::warn!(%failure, "the configuration was not reloaded");
                let data = json!({"error": failure.message, "hint": failure.hint});
                self.registry.emit_event(EventType::ConfigReloaded, None, None, data);
                return Err(failure);
            }
        };
        self.record_changes(&new, command, recorded).await?;
        let applied = self.apply(&new).await?;
        let (changed, restart) = (applied.changed.join(" "), applied.restart.join(" "));
        tracing::info!(changed, restart, "the configuration was reloaded");
        let data = json!({"changed": applied.changed, "restart": applied.restart});
        self.registry.emit_event(EventType::ConfigReloaded, None, None, data);
        Ok(applied)
    }

    /// Records the keys that are others than at the last reload.
    async fn record_changes(&self, new: &Config, command: &str, recorded: Option<&str>) -> Result<()> {
        // What keys that wait for a restart were last, is not in the configuration that is applied.
        let old = self.last_read.lock().replace(new.clone()).unwrap_or_else(|| Config::clone(&self.effective.base()));
        let is_recorded =
            |key: &str| recorded.is_some_and(|recorded| is_below(key, recorded) || is_below(recorded, key));
        for key in changed_keys(&old, new).into_iter().filter(|key| !is_recorded(key)) {
            let change = (&*key, command.to_owned());
            let (old, new) = (value_text(&old, &key), value_text(new, &key));
            let row = audit_row(self.clock.now(), &Requester::Owner, change, old, new);
            self.store.catalog.audit.append(row).await?;
        }
        Ok(())
    }

    async fn apply(&self, new: &Config) -> Result<Applied> {
        let _one_at_a_time = self.agents.lock.lock().await;
        // Before the models can use a key: no command of an agent may read its file.
        let file = self.effective.base().file.path.clone();
        let hidden = [new, &*self.effective.base()].map(|config| hidden_paths(&self.socket, &file, config));
        self.sandbox.hide_paths(hidden.concat());
        let replaced = self.effective.replace(new).await?;
        self.approvals.set_timeout(replaced.current.approval_timeout);
        let (models, current) = (self.models.clone(), replaced.current.clone());
        if run_blocking(move || Ok(models.reconfigure(&current))).await? {
            let models = self.models.clone();
            self.tasks.spawn_tracked(async move { drop(models.discover().await) });
        }
        apply_to_agents(&self.agents, &self.registry).await?;
        if let Err(failure) = publish_profile_hash(&self.store, &replaced.current.profiles).await {
            tracing::warn!(%failure, "cannot publish the hash of the permission profiles");
        }
        Ok(Applied { changed: replaced.changed, restart: replaced.pending })
    }

    /// Returns the path of the file.
    fn file(&self) -> PathBuf {
        Path::to_owned(&self.effective.base().file.path)
    }
}

/// Returns true if `key` is `above`, or in the table of this name.
fn is_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| rest.starts_with('.') || rest.is_empty())
}

/// Returns the value of a key, or those of the keys of a table as JSON, as `config show` has them: without secrets.
fn value_text(config: &Config, key: &str) -> Option<String> {
    let entries: serde_json::Map<String, Value> =
        config.to_entries().into_iter().filter(|(name, value)| is_below(name, key) && !value.is_null()).collect();
    match entries.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(value) => Some(value.to_string()),
        None => (!entries.is_empty()).then(|| Value::Object(entries).to_string()),
    }
}
