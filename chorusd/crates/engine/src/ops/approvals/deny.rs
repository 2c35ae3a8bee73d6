//! The operation `approvals.deny`.

use chorus_base::error::Result;
use chorus_base::requester::{Answerer, Requester};
use chorus_proto::methods::approvals::{DenyParams, DenyResult};

use crate::approvals::Approvals;

/// Denies an action.
///
/// # Errors
/// `not_found`, `conflict`, `expired`, or an answer that cannot be recorded, which also denies the action.
pub async fn deny(approvals: &Approvals, params: DenyParams) -> Result<DenyResult> {
    deny_as(approvals, params, &Requester::Owner.into()).await
}

/// Like [`deny`], on behalf of `by`.
///
/// # Errors
/// As [`deny`]; `denied` if `by` may not answer.
pub async fn deny_as(approvals: &Approvals, params: DenyParams, by: &Answerer) -> Result<DenyResult> {
    let claim = approvals.claim(&params.id, by, None).await?;
    let noted = claim.deny("denied by the user; do not retry unless asked").await?;
    Ok(DenyResult { approval: noted.deliver() })
}
