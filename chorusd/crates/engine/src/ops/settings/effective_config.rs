//! The effective configuration: that of the start with the changes of `settings set`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::sync::RwLock;
use chorus_config::{Config, RUNTIME_SETTINGS};
use chorus_store::Store;

/// The effective configuration.
#[derive(Debug)]
pub struct EffectiveConfig(RwLock<Arc<Config>>);

impl EffectiveConfig {
    /// Applies the settings in `store` to `config`. An invalid setting is ignored and logged.
    pub async fn load(store: &Store, config: &Config) -> Result<Self> {
        Ok(Self(RwLock::new(Arc::new(apply_settings(store, config).await?))))
    }

    /// Applies the settings in `store` again.
    pub async fn reload(&self, store: &Store, config: &Config) -> Result<()> {
        let new = Arc::new(apply_settings(store, config).await?);
        *self.0.write() = new;
        Ok(())
    }

    #[must_use]
    pub fn current(&self) -> Arc<Config> {
        self.0.read().clone()
    }
}

async fn apply_settings(store: &Store, config: &Config) -> Result<Config> {
    let mut config = config.clone();
    for (name, _) in RUNTIME_SETTINGS {
        let Some(value) = store.catalog.settings.get(name).await? else { continue };
        match config.with_setting(name, &value) {
            Ok(with) => config = with,
            Err(problem) => tracing::warn!(setting = name, "a setting is left out: it {problem}"),
        }
    }
    Ok(config)
}
