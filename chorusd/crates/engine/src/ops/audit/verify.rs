//! The operation `audit.verify`.

use chorus_base::error::Result;
use chorus_proto::methods::audit::{VerifyParams, VerifyResult};
use chorus_store::Store;

/// Verifies the hash chain of the audit log.
pub async fn verify(store: &Store, _: VerifyParams) -> Result<VerifyResult> {
    let walk = store.verify_audit_log().await?;
    let head = (walk.head.id > 0).then(|| walk.head.hex());
    let (at, reason) = walk.broken.map_or((None, None), |(at, reason)| (at, Some(reason)));
    let intact = reason.is_none();
    Ok(VerifyResult { rows: walk.rows, intact, broken_at: at.and_then(|at| u64::try_from(at).ok()), reason, head })
}
