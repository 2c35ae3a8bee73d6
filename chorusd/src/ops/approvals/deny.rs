//! `approvals.deny`.

use chorus_proto::methods::approvals::{DenyParams, DenyResult};

use crate::error::Result;
use crate::ops::Ops;
use crate::requester::{Answerer, Requester};

/// Refuses what was asked.
///
/// # Errors
/// `not_found`, `conflict`, `expired`, or an answer that cannot be written down; it is refused then, too.
pub async fn deny(ops: &Ops, params: DenyParams) -> Result<DenyResult> {
    deny_as(ops, params, &Requester::Owner.into()).await
}

/// As [`deny`], for somebody else than the owner.
///
/// # Errors
/// As [`deny`]; `denied` for one who may not answer it.
pub async fn deny_as(ops: &Ops, params: DenyParams, by: &Answerer) -> Result<DenyResult> {
    let claim = ops.registry.services.approvals.claim(&params.id, by, None).await?;
    let noted = claim.deny("a person refused it; do not try it again unless you are told to").await?;
    Ok(DenyResult { approval: noted.deliver() })
}
