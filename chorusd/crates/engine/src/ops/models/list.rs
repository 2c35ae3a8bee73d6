//! The operation `models.list`.

use chorus_base::error::Result;
use chorus_proto::methods::models::{ModelsParams, ModelsResult};

use crate::ops::Ops;

/// Returns the result of the last discovery.
pub async fn list(ops: &Ops, _: ModelsParams) -> Result<ModelsResult> {
    Ok(super::to_result(ops, ops.models.available()))
}
