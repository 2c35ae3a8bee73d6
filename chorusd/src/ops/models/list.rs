//! `models.list`.

use chorus_proto::methods::models::{ModelsParams, ModelsResult};

use crate::error::Result;
use crate::ops::Ops;

/// What the last discovery found.
///
/// # Errors
/// None.
pub async fn list(ops: &Ops, _: ModelsParams) -> Result<ModelsResult> {
    Ok(super::to_result(ops, ops.models.available()))
}
