//! The effective configuration: that of the file and the environment with the changes of `settings set`.

use std::fmt;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::sync::RwLock;
use chorus_catalog::SettingTable;
use chorus_config::{Config, RUNTIME_SETTINGS, changed_keys};
use chorus_runtime::run_blocking;
use tokio::sync::{Mutex, MutexGuard, watch};

/// Reads the file and the environment.
pub type ConfigReader = Arc<dyn Fn() -> Result<Config> + Send + Sync>;

/// The effective configuration.
pub struct EffectiveConfig {
    pub(in crate::ops) settings: Arc<dyn SettingTable>,
    read: ConfigReader,
    state: RwLock<State>,
    /// Held while the file is edited or read again.
    reloading: Mutex<()>,
    reloaded: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    /// Without the settings.
    base: Arc<Config>,
    current: Arc<Config>,
    /// Keys whose values apply after a restart.
    pending: Vec<String>,
}

/// The keys that [`EffectiveConfig::replace`] changed.
#[derive(Debug)]
pub(in crate::ops) struct Replaced {
    /// The configuration now.
    pub current: Arc<Config>,
    /// Keys with other values than before.
    pub changed: Vec<String>,
    /// Keys whose values apply after a restart.
    pub pending: Vec<String>,
}

impl fmt::Debug for EffectiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectiveConfig").field("state", &self.state).finish_non_exhaustive()
    }
}

impl EffectiveConfig {
    /// Applies the settings to the configuration that `read` returned at the start. An invalid setting is ignored and
    /// logged.
    pub async fn load(settings: Arc<dyn SettingTable>, at_start: Arc<Config>, read: ConfigReader) -> Result<Self> {
        let current = Arc::new(apply_settings(&settings, &at_start).await?);
        let state = RwLock::new(State { base: at_start, current, pending: Vec::new() });
        Ok(Self { settings, read, state, reloading: Mutex::default(), reloaded: watch::Sender::default() })
    }

    /// Applies the settings again.
    pub(super) async fn apply_settings(&self) -> Result<()> {
        let new = Arc::new(apply_settings(&self.settings, &self.base()).await?);
        self.state.write().current = new;
        Ok(())
    }

    /// Waits until nobody edits the file or reads it again.
    pub(in crate::ops) async fn lock_file(&self) -> MutexGuard<'_, ()> {
        self.reloading.lock().await
    }

    /// Reads the file and the environment again, without any effect.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub(in crate::ops) async fn read_again(&self) -> Result<Config> {
        let read = self.read.clone();
        run_blocking(move || read()).await
    }

    /// Takes those values of `new` that a running daemon applies. The caller holds the lock of the agents.
    pub(in crate::ops) async fn replace(&self, new: &Config) -> Result<Replaced> {
        let (old, base) = (self.current(), self.base());
        let merged = Arc::new(base.with_live_values(new));
        let current = Arc::new(apply_settings(&self.settings, &merged).await?);
        let pending = changed_keys(&merged, new);
        *self.state.write() = State { base: merged, current: current.clone(), pending: pending.clone() };
        self.reloaded.send_replace(());
        Ok(Replaced { changed: changed_keys(&old, &current), pending, current })
    }

    /// Returns a receiver that sees each reload from now on.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.reloaded.subscribe()
    }

    /// Returns the configuration without the settings.
    #[must_use]
    pub fn base(&self) -> Arc<Config> {
        self.state.read().base.clone()
    }

    #[must_use]
    pub fn current(&self) -> Arc<Config> {
        self.state.read().current.clone()
    }

    /// Lists the keys whose values the file or the environment changed, and that apply after a restart.
    #[must_use]
    pub fn pending_keys(&self) -> Vec<String> {
        self.state.read().pending.clone()
    }
}

async fn apply_settings(settings: &Arc<dyn SettingTable>, config: &Config) -> Result<Config> {
    let mut config = config.clone();
    for (name, _) in RUNTIME_SETTINGS {
        let Some(value) = settings.get(name).await? else { continue };
        match config.with_setting(name, &value) {
            Ok(with) => config = with,
            Err(problem) => tracing::warn!(setting = name, "ignoring an invalid setting: it {problem}"),
        }
    }
    Ok(config)
}
