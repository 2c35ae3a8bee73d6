//! The operation `models.validate`.

use chorus_base::error::Result;
use chorus_llm::Models;
use chorus_proto::methods::models::{ModelsParams, ModelsResult};

use crate::ops::settings::EffectiveConfig;

/// Requests the models of every provider. The failure of a provider is part of the result.
pub async fn validate(models: &Models, config: &EffectiveConfig, _: ModelsParams) -> Result<ModelsResult> {
    let found = models.discover().await;
    Ok(super::to_result(models, config, found))
}
