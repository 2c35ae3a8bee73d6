//! The operation `approvals.deny`.

use chorus_base::error::Result;
use chorus_base::requester::{Answerer, Requester};
use chorus_proto::methods::approvals::{DenyParams, DenyResult};

use crate::ops::Ops;

/// Denies an action.
///
/// # Errors
/// `not_found`, `conflict`, `expired`, or an answer that cannot be recorded, which also denies the action.
pub async fn deny(ops: &Ops, params: DenyParams) -> Result<DenyResult> {
    deny_as(ops, params, &Requester::Owner.into()).await
}

/// Like [`deny`], on behalf of `by`.
///
/// # Errors
/// As [`deny`]; `denied` if `by` may not answer.
pub async fn deny_as(ops: &Ops, params: DenyParams, by: &Answerer) -> Result<DenyResult> {
    let claim = ops.approvals.claim(&params.id, by, None).await?;
    let noted = claim.deny("a person refused it; do not try it again unless you are told to").await?;
    Ok(DenyResult { approval: noted.deliver() })
}
