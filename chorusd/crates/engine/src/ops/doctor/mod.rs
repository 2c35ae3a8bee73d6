//! `doctor`: checks the whole installation, and repairs databases on request.

mod audit;
mod capture;
mod catalog_drift;
mod cluster;
mod configuration;
mod databases;
mod discord;
mod home;
mod journal;
mod mcp;
mod models;
mod permission_rules;
mod programs;
mod sandbox;
mod search;
pub mod secrets;
pub mod size;
mod traces;

use chorus_base::error::Result;
use chorus_proto::methods::doctor::{Check, DoctorParams, DoctorResult, Verdict};
use chorus_runtime::run_blocking;
use chorus_store::{CATALOG_FILE, JOURNAL_FILE};
use futures_util::future::BoxFuture;

use super::session::import::OnProgress;
use super::{Ops, catalog_rebuild, session_salvage};

/// Runs all checks. If requested, and if the databases are intact, first rebuilds the catalog's index or salvages the
/// journal. A rebuild reports the number of sessions that were read.
pub fn doctor<'a>(ops: &'a Ops, params: DoctorParams, progress: OnProgress) -> BoxFuture<'a, Result<DoctorResult>> {
    Box::pin(async move {
        let (home, thorough) = (ops.home.clone(), params.rebuild);
        let is_sqlite = ops.store.sqlite().is_some();
        let mut checks =
            if is_sqlite { run_blocking(move || Ok(databases::checks(&home, thorough))).await? } else { Vec::new() };
        let failed = |name: &str| checks.iter().any(|check| check.name == name && check.verdict == Verdict::Fail);
        let (damaged, journal_damaged) = (failed(CATALOG_FILE), failed(JOURNAL_FILE));
        // Writing into a damaged database would make it worse; the offline repair sets it aside instead.
        let rebuilt = if params.rebuild && !damaged {
            Some(catalog_rebuild::rebuild_catalog(ops, progress).await?)
        } else {
            None
        };
        let salvaged = if params.salvage && !damaged && !journal_damaged {
            Some(session_salvage::salvage(ops).await?)
        } else {
            None
        };
        if is_sqlite && !journal_damaged {
            checks.extend(or_failed("journal", journal::checks(ops).await));
        }
        if !damaged {
            checks.extend(or_failed("agents", catalog_drift::checks(ops).await));
            checks.extend(or_failed("audit log", audit::checks(ops).await));
            checks.extend(or_failed(
                "permission rules",
                permission_rules::check_rules(ops).await.map(|check| vec![check]),
            ));
        }
        checks.extend(or_failed("cluster", cluster::checks(ops).await));
        let (home, socket) = (ops.home.clone(), ops.daemon.socket.get());
        checks.extend(
            run_blocking(move || {
                Ok([home::check_permissions(&home), home::check_space(&home), home::check_socket(&socket, &home)])
            })
            .await?,
        );
        checks.push(configuration::check_file(&ops.effective_config).await);
        checks.extend(or_failed("models", models::checks(ops).await));
        checks.extend(mcp::checks(ops));
        checks.extend(search::checks(ops));
        checks.extend(or_failed("capture", capture::checks(ops).await));
        checks.extend(traces::checks(ops));
        checks.extend(or_failed("Discord", discord::checks(ops).await));
        checks.extend(run_blocking(|| Ok(programs::checks())).await?);
        checks.extend(sandbox::checks(ops.sandbox.level_or_probe().await));
        Ok(DoctorResult { checks, rebuilt, salvaged })
    })
}

/// The checks `found`. If they could not be made, for example because a database became unreadable under the daemon, one
/// failed check in their place: a report says as much as it can.
fn or_failed(name: &str, found: Result<Vec<Check>>) -> Vec<Check> {
    found.unwrap_or_else(|e| vec![Check { hint: e.hint, ..check(name, Verdict::Fail, e.message) }])
}

fn check(name: &str, verdict: Verdict, text: impl Into<String>) -> Check {
    Check { name: name.to_owned(), verdict, text: text.into(), hint: None }
}

/// Like [`check`], with a hint.
fn check_with(name: &str, verdict: Verdict, text: impl Into<String>, hint: impl Into<String>) -> Check {
    Check { hint: Some(hint.into()), ..check(name, verdict, text) }
}

/// Formats `a, b, c and 4 more`.
fn join_some(names: &[String]) -> String {
    const MAX_SHOWN: usize = 3;
    let shown = names[..names.len().min(MAX_SHOWN)].join(", ");
    match names.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{shown} and {more} more"),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).into();
        assert_eq!((join_some(&names[..3]), join_some(&names)), ("a, b, c".into(), "a, b, c and 2 more".into()));
    }
}
