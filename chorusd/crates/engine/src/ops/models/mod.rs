//! The operations `models.*`.

pub mod list;
pub mod validate;

use chorus_llm::{DiscoveryStatus, ModelCatalog, ModelInfo, ModelRef, Models, ProviderModels};
use chorus_proto::methods::models::{Discovery, Model, ModelProvider, ModelsResult};

use crate::ops::settings::EffectiveConfig;

/// Converts the model catalog into its form in the protocol.
fn to_result(models: &Models, config: &EffectiveConfig, available: ModelCatalog) -> ModelsResult {
    ModelsResult {
        default_model: config.current().default_model.clone(),
        aliases: models.aliases(),
        providers: available.providers.into_iter().map(|found| to_provider(models, found)).collect(),
    }
}

fn to_provider(models: &Models, of: ProviderModels) -> ModelProvider {
    ModelProvider {
        models: of.models.into_iter().map(|info| to_model(models, &of.name, info)).collect(),
        key_from: models.describe_key_source(&of.name),
        name: of.name,
        kind: of.kind,
        base_url: of.base_url,
        local: of.local,
        found: match of.found {
            DiscoveryStatus::Ok => Discovery::Ok,
            DiscoveryStatus::Failed => Discovery::Failed,
            DiscoveryStatus::NotRun => Discovery::NotRun,
        },
        problem: of.problem,
        hint: of.hint,
        checked_at: of.checked_at,
    }
}

fn to_model(models: &Models, provider: &str, info: ModelInfo) -> Model {
    let target = ModelRef::new(provider, info.id);
    Model {
        context_length: models.context_length(&target),
        price: models.price(&target),
        name: target.to_string(),
        display_name: info.display_name,
    }
}
