//! The operation `models.validate`.

use chorus_base::error::Result;
use chorus_proto::methods::models::{ModelsParams, ModelsResult};

use crate::ops::Ops;

/// Requests the models of every provider. The failure of a provider is part of the result.
pub async fn validate(ops: &Ops, _: ModelsParams) -> Result<ModelsResult> {
    let found = ops.models.discover().await;
    Ok(super::to_result(ops, found))
}
