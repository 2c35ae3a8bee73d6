//! What discovery found: available_models.json.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::Price;

/// The result of the last discovery.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCatalog {
    #[serde(default)]
    pub providers: Vec<ProviderModels>,
}

/// One provider and its models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderModels {
    pub name: String,
    pub kind: String,
    pub base_url: String,
    /// True where it was found on this machine and is not configured.
    #[serde(default)]
    pub local: bool,
    pub found: DiscoveryStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When it was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Timestamp>,
    /// What it listed when it was last asked with success.
    #[serde(default)]
    pub models: Vec<ModelInfo>,
}

/// How discovery went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveryStatus {
    Ok,
    Failed,
    NotRun,
}

/// One model, as its provider lists it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// In tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u64>,
    /// As the provider tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether it looks at images, where its provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
}

impl ModelCatalog {
    /// What is known of one provider.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&ProviderModels> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// How many models can be named.
    #[must_use]
    pub fn count(&self) -> u64 {
        let listed = self.providers.iter().filter(|provider| provider.found == DiscoveryStatus::Ok);
        listed.map(|provider| provider.models.len() as u64).sum()
    }
}

impl ProviderModels {
    /// What is known of one model.
    #[must_use]
    pub fn model(&self, id: &str) -> Option<&ModelInfo> {
        self.models.iter().find(|model| model.id == id)
    }
}
