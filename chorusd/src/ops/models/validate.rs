//! `models.validate`.

use chorus_proto::methods::models::{ModelsParams, ModelsResult};

use crate::error::Result;
use crate::ops::Ops;

/// Asks every provider for its models. One that fails is no error of the request.
///
/// # Errors
/// None.
pub async fn validate(ops: &Ops, _: ModelsParams) -> Result<ModelsResult> {
    let found = ops.models.discover().await;
    Ok(super::to_result(ops, found))
}
