//! The effective configuration: that of the start with the changes of `settings set`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::sync::RwLock;
use chorus_catalog::SettingTable;
use chorus_config::{Config, RUNTIME_SETTINGS};

/// The effective configuration.
#[derive(Debug)]
pub struct EffectiveConfig {
    at_start: Arc<Config>,
    pub(super) settings: Arc<dyn SettingTable>,
    current: RwLock<Arc<Config>>,
}

impl EffectiveConfig {
    /// Applies the settings to the configuration as read at the start. An invalid setting is ignored and logged.
    pub async fn load(settings: Arc<dyn SettingTable>, at_start: Arc<Config>) -> Result<Self> {
        let current = RwLock::new(Arc::new(apply_settings(&settings, &at_start).await?));
        Ok(Self { at_start, settings, current })
    }

    /// Applies the settings again.
    pub async fn reload(&self) -> Result<()> {
        let new = Arc::new(apply_settings(&self.settings, &self.at_start).await?);
        *self.current.write() = new;
        Ok(())
    }

    /// Returns the configuration as read at the start, without the settings.
    #[must_use]
    pub fn at_start(&self) -> &Config {
        &self.at_start
    }

    #[must_use]
    pub fn current(&self) -> Arc<Config> {
        self.current.read().clone()
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
