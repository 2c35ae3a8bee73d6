//! Checks the cluster: the database that the nodes share, the clock, the nodes and the ways to them, and the bucket.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_journal::{DatabaseReport, NodeRow, NodeState, Ownership};
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::pluralize::pluralize;
use chorus_runtime::run_blocking;
use chorus_store::{BodyComparison, BucketComparison};
use futures_util::future::join_all;
use uuid::Uuid;

use super::{check, check_with, join_some};
use crate::ops::Ops;
use crate::ops::cluster::{PeerChecks, reach_within};

/// Difference of two clocks from which on it is reported, in nanoseconds.
const MAX_CLOCK_DIFFERENCE: i64 = 2_000_000_000;

/// Time within which another node has to be reached.
const REACH_TIMEOUT: Duration = Duration::from_secs(6);

/// Time for the comparison of the sessions with the bucket.
const COMPARISON_LIMIT: Duration = Duration::from_secs(30);

/// Runs all of them. Empty if this daemon shares its database with nobody.
pub(super) async fn checks(ops: &Ops) -> Result<Vec<Check>> {
    let Some(ownership) = &ops.store.ownership else { return Ok(Vec::new()) };
    let (database, nodes) = (ownership.database().await?, ownership.nodes().await?);
    let running = nodes.iter().filter(|node| matches!(node.state, NodeState::Running | NodeState::Draining)).count();
    let mut checks = check_durability(&database);
    checks.push(check_connections(&database, running));
    checks.push(check_clock(&database));
    checks.extend(check_bucket(ops).await);
    checks.extend(check_workspace_root(ops).await);
    if let Some(peers) = ops.peer_checks.get() {
        checks.extend(peers.check_settings().await);
        checks.extend(check_nodes(&**ownership, peers, &nodes).await);
    }
    checks.extend(compare_nodes(&**ownership, &nodes));
    Ok(checks)
}

/// Checks what the database can lose.
fn check_durability(database: &DatabaseReport) -> Vec<Check> {
    let mut checks = vec![check("PostgreSQL", Verdict::Ok, database.version.clone())];
    let damaging = [("fsync", &database.fsync), ("full_page_writes", &database.full_page_writes)];
    for (setting, _) in damaging.into_iter().filter(|(_, value)| *value == "off") {
        let text = format!("{setting} is off: a crash of the server can damage the database");
        checks.push(check_with("PostgreSQL", Verdict::Fail, text, format!("set {setting} = on in postgresql.conf")));
    }
    let level = database.synchronous_commit.as_str();
    let has_standby = !database.synchronous_standby_names.is_empty();
    checks.push(match level {
        "off" => check_with(
            "commits",
            Verdict::Fail,
            "synchronous_commit is off: a crash of the server loses messages that were acknowledged",
            "set synchronous_commit = on for the server, the database and the user",
        ),
        "local" if has_standby => check_with(
            "commits",
            Verdict::Warn,
            "synchronous_commit is local: standbys are not waited for",
            "set synchronous_commit = on, so that a standby that takes over has every acknowledged message",
        ),
        _ if has_standby => check("commits", Verdict::Ok, format!("synchronous_commit is {level}, with standbys")),
        _ => check_with(
            "commits",
            Verdict::Warn,
            "synchronous_standby_names is empty: if a standby takes over, the newest acknowledged messages can be lost",
            "name a standby in synchronous_standby_names; without standbys nothing has to be done",
        ),
    });
    if database.wal_level == "minimal" {
        let text = "wal_level is minimal: there can be no standby and no recovery to a point in time";
        checks.push(check_with("PostgreSQL", Verdict::Warn, text, "set wal_level = replica and restart the server"));
    }
    checks
}

fn check_connections(database: &DatabaseReport, nodes: usize) -> Check {
    let DatabaseReport { max_connections, connections, connections_per_node, is_pooled, .. } = database;
    let needed = u64::try_from(nodes).unwrap_or(u64::MAX).saturating_mul(u64::from(*connections_per_node));
    if *is_pooled {
        let text = format!("a pooler is on the way; the server has {connections} of {max_connections} connections");
        return check("connections", Verdict::Ok, text);
    }
    let count = pluralize(u64::try_from(nodes).unwrap_or(u64::MAX), "node");
    let text = format!("{count} can open {needed}; the server has {connections} of {max_connections} open");
    if needed <= u64::from(*max_connections) {
        return check("connections", Verdict::Ok, text);
    }
    check_with("connections", Verdict::Warn, text, "raise max_connections, or put pgbouncer in front of the server")
}

fn check_clock(database: &DatabaseReport) -> Check {
    let difference = database.clock_ahead.saturating_abs();
    if difference <= MAX_CLOCK_DIFFERENCE.saturating_add(database.clock_precision) {
        return check("clock", Verdict::Ok, "agrees with that of the database");
    }
    let side = if database.clock_ahead > 0 { "ahead of" } else { "behind" };
    let seconds = difference / 1_000_000_000;
    let text = format!("the clock of this machine is {seconds} s {side} that of the database");
    check_with("clock", Verdict::Warn, text, "synchronize both machines with NTP; times in conversations are wrong")
}

/// Checks the directory of workspaces that the nodes share, if they do.
async fn check_workspace_root(ops: &Ops) -> Option<Check> {
    const NAME: &str = "workspace root";
    let root = ops.store.workspace_root.clone()?;
    let path = root.path().display().to_string();
    Some(match run_blocking(move || root.try_to_write()).await {
        Ok(()) => check(NAME, Verdict::Ok, format!("the workspaces of all nodes are in {path}")),
        Err(failure) => Check { hint: failure.hint.clone(), ..check(NAME, Verdict::Fail, failure.to_string()) },
    })
}

/// Tries the rights that the bucket of sessions has to grant.
async fn check_bucket(ops: &Ops) -> Vec<Check> {
    let Some(bodies) = &ops.store.bodies else {
        let text = "sessions are files of the node that saved them; other nodes cannot read them";
        return vec![check_with("session bodies", Verdict::Warn, text, "set kind in the table [store.sessions]")];
    };
    let rights = bodies.probe().await;
    let names: Vec<&str> = rights.iter().map(|(right, _)| *right).collect();
    let failed = rights.iter().filter_map(|(right, failure)| Some((right, failure.as_ref()?)));
    let failed: Vec<Check> = failed
        .map(|(right, failure)| Check {
            hint: failure.hint.clone(),
            ..check("session bodies", Verdict::Fail, format!("{right} does not work: {failure}"))
        })
        .collect();
    if !failed.is_empty() {
        return failed;
    }
    let mut checks = vec![check("session bodies", Verdict::Ok, format!("{} work", names.join(", ")))];
    match bodies.compare(COMPARISON_LIMIT).await {
        Ok(BucketComparison { sessions, workspaces }) => {
            checks.extend(describe_sessions(&sessions));
            checks.extend(describe_workspaces(ops, &workspaces).await);
        }
        Err(failure) => {
            let text = format!("cannot be compared with the database: {failure}");
            checks.push(Check { hint: failure.hint, ..check("bucket contents", Verdict::Warn, text) });
        }
    }
    checks
}

/// Returns checks of what does not fit after a restore of the database or of the bucket to an earlier moment.
fn describe_sessions(found: &BodyComparison) -> Vec<Check> {
    let mut checks = Vec::new();
    if found.missing_count > 0 {
        let sessions = found.missing.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if found.missing_count > 3 { ", ..." } else { "" };
        let text =
            format!("the messages of {} are missing: {sessions}{more}", pluralize(found.missing_count, "session"));
        let hint = "check that [store.sessions] is the same on all nodes; if it is, restore the deleted versions of these objects: docs/SCALING.md, Backups";
        checks.push(check_with("bucket contents", Verdict::Fail, text, hint));
    }
    if found.unnamed > 0 {
        let text = format!(
            "{} without a session: of saves that did not end, or later than what the database was restored to",
            pluralize(found.unnamed, "object")
        );
        let hint = "they are deleted a day after they were written; copy the bucket before, if they are needed";
        checks.push(check_with("bucket contents", Verdict::Warn, text, hint));
    }
    let compared = pluralize(found.compared, "session");
    if !found.complete {
        let text = format!("only {compared} could be compared with the bucket in {} s", COMPARISON_LIMIT.as_secs());
        let hint = "the others may lack their messages; each says so when it is read";
        checks.push(check_with("bucket contents", Verdict::Warn, text, hint));
    } else if checks.is_empty() {
        checks.push(check("bucket contents", Verdict::Ok, format!("it has the messages of {compared}")));
    }
    checks
}

/// Does the same for the checkpoints of workspaces, if there are any.
async fn describe_workspaces(ops: &Ops, found: &BodyComparison) -> Vec<Check> {
    let mut checks = Vec::new();
    if found.missing_count > 0 {
        let ids: BTreeSet<Uuid> = found.missing.iter().filter_map(|id| id.parse().ok()).collect();
        let rows = ops.store.catalog.agents.list_by_id(ids.iter().copied().collect()).await.unwrap_or_default();
        let name =
            |id: &Uuid| rows.iter().find(|row| row.id == *id).map_or_else(|| id.to_string(), |row| row.name.clone());
        let mut names: Vec<String> = ids.iter().map(name).collect();
        names.sort();
        let more = if names.len() > 3 { ", ..." } else { "" };
        names.truncate(3);
        let missing = pluralize(found.missing_count, "checkpoint");
        let text = format!("the bucket lacks {missing} of the workspaces of {}{more}", names.join(", "));
        let hint = "restore the deleted versions of the objects below workspaces/ in the bucket; without them, another node starts with the files that it has";
        checks.push(check_with("workspaces", Verdict::Fail, text, hint));
    }
    if !found.complete {
        let text = "not all checkpoints of workspaces could be compared with the bucket";
        checks.push(check_with("workspaces", Verdict::Warn, text, "run chorusctl doctor again"));
    } else if checks.is_empty() && found.compared > 0 {
        let compared = pluralize(found.compared, "checkpoint");
        checks.push(check("workspaces", Verdict::Ok, format!("{compared} of workspaces, and none is missing")));
    }
    checks
}

/// Connects to the other nodes.
async fn check_nodes(ownership: &dyn Ownership, peers: &Arc<dyn PeerChecks>, nodes: &[NodeRow]) -> Vec<Check> {
    let others = nodes.iter().filter(|node| node.name != ownership.node());
    let check_node = |node: &NodeRow| {
        let (name, address, state) = (node.name.clone(), node.address.clone(), node.state);
        let seconds = node.heartbeat_age.as_secs();
        async move {
            let of = format!("node {name}");
            match state {
                NodeState::Stopped => check(&of, Verdict::Ok, "has stopped"),
                NodeState::Silent => {
                    let text = format!("is down: no heartbeat for {seconds} s");
                    check_with(&of, Verdict::Warn, text, format!("see chorusctl daemon logs on {name}"))
                }
                _ if address.is_empty() => {
                    let text = "has no address: requests for its agents fail on other nodes";
                    check_with(&of, Verdict::Warn, text, "set listen and advertise in its table [cluster]")
                }
                NodeState::Running | NodeState::Draining => {
                    match reach_within(&**peers, (&name, &address), REACH_TIMEOUT).await {
                        Ok(()) => check(&of, Verdict::Ok, format!("was reached at {address}")),
                        Err(failure) => Check {
                            hint: failure.hint.or_else(|| Some(format!("open {address} for the other nodes"))),
                            ..check(&of, Verdict::Fail, format!("is unreachable at {address}: {}", failure.message))
                        },
                    }
                }
            }
        }
    };
    join_all(others.map(check_node)).await
}

/// Compares versions and profiles of the nodes that run.
fn compare_nodes(ownership: &dyn Ownership, nodes: &[NodeRow]) -> Vec<Check> {
    let is_up = |node: &&NodeRow| matches!(node.state, NodeState::Running | NodeState::Draining);
    let up: Vec<&NodeRow> = nodes.iter().filter(is_up).collect();
    let Some(own) = up.iter().find(|node| node.name == ownership.node()) else { return Vec::new() };
    let mut checks = Vec::new();
    let differ = |differs: &dyn Fn(&NodeRow) -> bool| -> Vec<String> {
        up.iter().filter(|node| differs(node)).map(|node| node.name.clone()).collect()
    };
    let others = differ(&|node| node.version != own.version);
    if !others.is_empty() {
        let text = format!("this node runs {}, and {} another one", own.version, join_some(&others));
        checks.push(check_with("versions", Verdict::Warn, text, "upgrade the other nodes, one after the other"));
    }
    let others = differ(&|node| node.profiles != own.profiles && !node.profiles.is_empty());
    if !others.is_empty() {
        let text = format!("the permission profiles of {} differ from those here", join_some(&others));
        checks.push(check_with(
            "permission profiles",
            Verdict::Warn,
            text,
            "give all nodes the same profiles in config.toml, and restart those that were changed",
        ));
    }
    checks
}
