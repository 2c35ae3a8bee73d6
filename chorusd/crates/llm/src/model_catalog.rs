//! The model catalog: the result of discovery, stored in available_models.json.

use chorus_config::Price;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The result of the last discovery.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCatalog {
    #[serde(default)]
    pub providers: Vec<ProviderModels>,
}

/// A provider and its models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderModels {
    pub name: String,
    pub kind: String,
    pub base_url: String,
    /// Whether this is a local server that was found and is not configured.
    #[serde(default)]
    pub local: bool,
    pub found: DiscoveryStatus,
    /// Why discovery failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Time of the last query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Timestamp>,
    /// Models of the last successful query.
    #[serde(default)]
    pub models: Vec<ModelInfo>,
}

/// Outcome of discovery for a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveryStatus {
    Ok,
    Failed,
    NotRun,
}

/// A model in its provider's list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// In tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u64>,
    /// Price in the provider's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether the model accepts images, if its provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
}

impl ModelCatalog {
    /// Returns the entry of a provider.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&ProviderModels> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// Number of models of the providers whose last query succeeded.
    #[must_use]
    pub fn count(&self) -> u64 {
        let listed = self.providers.iter().filter(|provider| provider.found == DiscoveryStatus::Ok);
        listed.map(|provider| provider.models.len() as u64).sum()
    }
}

impl ProviderModels {
    /// Returns the entry of a model.
    #[must_use]
    pub fn model(&self, id: &str) -> Option<&ModelInfo> {
        self.models.iter().find(|model| model.id == id)
    }
}
