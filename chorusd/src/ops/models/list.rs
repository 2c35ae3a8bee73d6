//! `models.list`.

use chorus_proto::methods::models::{ModelsParams, ModelsResult};

use crate::failure::Result;
use crate::ops::Ops;

/// What the last discovery found.
///
/// # Errors
/// None.
pub async fn list(ops: &Ops, _: ModelsParams) -> Result<ModelsResult> {
    Ok(super::shown(ops, ops.models.available()))
}
