//! The part of the configuration that is about models.

use std::collections::BTreeMap;

use chorus_config::{Config, Price, Provider};
use chorus_redact::Redactor;

use super::api_key;

/// Providers, short names and prices.
#[derive(Debug)]
pub(crate) struct ModelSettings {
    pub providers: BTreeMap<String, Provider>,
    pub aliases: BTreeMap<String, String>,
    pub prices: BTreeMap<String, Price>,
}

impl ModelSettings {
    /// Takes the settings of `config`. `redactor` learns the keys that are readable now. Reads files: blocks.
    pub(crate) fn read(config: &Config, redactor: &Redactor) -> Self {
        for provider in config.providers.values() {
            if let Ok(Some(key)) = api_key::read_key(provider) {
                redactor.add_own_key(&key);
            }
        }
        let Config { providers, aliases, prices, .. } = config.clone();
        Self { providers, aliases, prices }
    }
}
