//! The operation `search.model`.

use std::path::PathBuf;

use chorus_base::error::{Error, Result};
use chorus_proto::methods::search::{ModelParams, ModelResult};

use crate::semantic::SemanticService;

/// Shows the model that compares messages by meaning, or chooses another.
///
/// # Errors
/// `invalid_params` for a relative path, `not_found` if the directory has no model that can be used; `model_unavailable` if the provider's makes no vectors;
/// `storage_failed`, `disk_full`.
pub async fn model(semantic: &SemanticService, params: ModelParams) -> Result<ModelResult> {
    match (params.from, params.use_, params.remove) {
        (None, None, false) => {}
        (Some(from), None, false) => {
            let from = PathBuf::from(from);
            if !from.is_absolute() {
                return Err(Error::invalid("`from` is not an absolute path").hint("name the directory from / on"));
            }
            semantic.choose_local(from).await?;
        }
        (None, Some(name), false) => semantic.choose_provider(&name).await?,
        (None, None, true) => semantic.remove().await?,
        _ => return Err(Error::invalid("`from`, `use` and `remove` cannot be combined").hint("name one of them")),
    }
    Ok(ModelResult { model: semantic.describe(), problem: semantic.choice_problem() })
}
