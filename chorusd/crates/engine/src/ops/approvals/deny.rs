//! The operation `approvals.deny`.

use chorus_base::error::{Error, Result};
use chorus_base::requester::{Answerer, Requester};
use chorus_proto::methods::approvals::{DenyParams, DenyResult};

use crate::approvals::Approvals;
use crate::ops::agent::AgentResolver;

/// Limit on the reason of a denial, in bytes.
const MAX_REASON_LEN: usize = 4 << 10;

/// Denies an action. The reason, if there is one, goes to the model.
///
/// # Errors
/// `invalid_params` for a reason that is too long, `not_found`, `conflict`, `expired`, or an answer that cannot be recorded, which also denies the action.
pub async fn deny(agents: &AgentResolver, approvals: &Approvals, params: DenyParams) -> Result<DenyResult> {
    super::ensure_agent_here(agents, approvals, &params.id).await?;
    deny_as(approvals, params, &Requester::Owner.into()).await
}

/// Like [`deny`], on behalf of `by`.
///
/// # Errors
/// As [`deny`]; `denied` if `by` may not answer.
pub async fn deny_as(approvals: &Approvals, params: DenyParams, by: &Answerer) -> Result<DenyResult> {
    let reason = params.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    if reason.is_some_and(|reason| reason.len() > MAX_REASON_LEN) {
        return Err(Error::invalid(format!("the reason is longer than {MAX_REASON_LEN} bytes"))
            .hint("shorten it, or send it as a message after the turn"));
    }
    let claim = approvals.claim(&params.id, by, None).await?;
    let why = match reason {
        Some(reason) => format!("denied by the user, who says: {reason}"),
        None => "denied by the user; do not retry unless asked".to_owned(),
    };
    let noted = claim.deny(&why).await?;
    Ok(DenyResult { approval: noted.deliver() })
}
