//! The operation `models.list`.

use chorus_base::error::Result;
use chorus_llm::Models;
use chorus_proto::methods::models::{ModelsParams, ModelsResult};

use crate::ops::settings::EffectiveConfig;

/// Returns the result of the last discovery.
pub async fn list(models: &Models, config: &EffectiveConfig, _: ModelsParams) -> Result<ModelsResult> {
    Ok(super::to_result(models, config, models.available()))
}
