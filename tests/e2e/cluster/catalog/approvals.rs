//! Rows of approvals.

use chorus_catalog::{AuditFilter, DecidedApproval};
use chorus_proto::methods::approvals::Status;
use chorus_tests::postgres::Result;
use chorus_tests::rng::Rng;

use super::both::{Script, agent, same_in_both};
use super::rows::{approval, decision};
use crate::cluster::at;

async fn note_approvals(script: &mut Script) {
    let approvals = script.tables.approvals.clone();
    script.outcome("open", approvals.list_open().await);
    for most in [0, 1, 3, 1_000] {
        script.outcome("decided", approvals.list_decided(None, most).await);
        script.outcome("decided", approvals.list_decided(Some(agent(1)), most).await);
    }
}

async fn random(script: &mut Script) -> Result {
    let approvals = script.tables.approvals.clone();
    let mut rng = Rng::new(3);
    for round in 0..80 {
        let id = format!("id{}", rng.below(40));
        let whose = agent(rng.below(3));
        if rng.below(2) == 0 {
            // Several are asked at once.
            let row = approval(whose, &id, i64::try_from(rng.below(20))?);
            script.outcome("insert", approvals.insert(row).await);
        } else {
            let status = [Status::Approved, Status::Denied, Status::Expired][usize::try_from(rng.below(3))?];
            let by = (rng.below(2) == 0).then(|| "owner".to_owned());
            let decided = DecidedApproval { id: id.clone(), status, at: at(round), by };
            script.outcome("outcome", approvals.record_outcome(decided, decision(whose, &id)).await);
        }
        script.outcome("get", approvals.get(id).await);
        note_approvals(script).await;
    }
    script.outcome("unknown", approvals.get("none".into()).await);
    script.outcome("not an id", approvals.get("\u{0}".into()).await);
    // Only outcomes that were recorded are in the log.
    script.note("log", &script.tables.audit.page(AuditFilter::default()).await?);
    Ok(())
}

same_in_both! { random_approvals_and_outcomes = random }
