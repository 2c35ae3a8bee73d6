//! Checks the audit log.

use chorus_base::error::Result;
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::pluralize::pluralize;

use super::{check, check_with};
use crate::ops::Ops;

/// Checks its hash chain.
pub(super) async fn checks(ops: &Ops) -> Result<Vec<Check>> {
    let walk = ops.store.verify_audit_log().await?;
    Ok(vec![match walk.broken {
        None => check("audit log", Verdict::Ok, format!("{}, hash chain intact", pluralize(walk.rows, "entry"))),
        Some((at, why)) => {
            let at = at.map_or_else(String::new, |at| format!("row {at}: "));
            check_with(
                "audit log",
                Verdict::Fail,
                format!("hash chain broken: {at}{why}"),
                "earlier entries are intact (chorusctl audit); db/chorus.db was modified, or replaced by an \
                 older copy",
            )
        }
    }])
}
