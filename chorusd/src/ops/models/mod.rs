//! `models.*`.

pub mod list;
pub mod validate;

use chorus_proto::methods::models::{Discovery, Model, ModelProvider, ModelsResult};

use crate::llm::{Available, Found, ModelInfo, Models, ProviderModels, Target};
use crate::ops::Ops;

/// What was found, as the wire shows it.
fn shown(ops: &Ops, available: Available) -> ModelsResult {
    let models = &ops.models;
    ModelsResult {
        default_model: ops.defaults().default_model.clone(),
        aliases: models.aliases().clone(),
        providers: available.providers.into_iter().map(|found| provider(models, found)).collect(),
    }
}

fn provider(models: &Models, of: ProviderModels) -> ModelProvider {
    ModelProvider {
        models: of.models.into_iter().map(|info| model(models, &of.name, info)).collect(),
        key_from: models.key_from(&of.name),
        name: of.name,
        kind: of.kind,
        base_url: of.base_url,
        local: of.local,
        found: match of.found {
            Found::Ok => Discovery::Ok,
            Found::Failed => Discovery::Failed,
            Found::NotRun => Discovery::NotRun,
        },
        problem: of.problem,
        hint: of.hint,
        checked_at: of.checked_at,
    }
}

fn model(models: &Models, provider: &str, info: ModelInfo) -> Model {
    let target = Target::new(provider, info.id);
    Model {
        context_length: models.window_of(&target),
        price: models.price_of(&target),
        name: target.to_string(),
        display_name: info.display_name,
    }
}
