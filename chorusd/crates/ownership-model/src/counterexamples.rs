//! Without any one of its rules, the protocol violates a property: each test prints a shortest path to it.

use crate::checks::three_nodes;
use crate::properties::{ACKNOWLEDGED, EPOCH, HOLDER, NO_FALL, NOT_OVERTAKEN, ONCE, Property, SEQ, WRITER};
use crate::report::shortest_violation;
use crate::setting::{Heartbeats, Rule, Setting};

/// Two nodes and one agent are enough to violate each property. States are not merged, so that the names in a path are true.
fn two_nodes(rule: Rule) -> Setting {
    Setting { nodes: 2, agents: 1, writes: 2, symmetric: false, ..three_nodes() }.without(rule)
}

fn violated_without(rule: Rule, property: Property) {
    shortest_violation(&two_nodes(rule), property);
}

/// As `violated_without`, with heartbeats that are always in time.
fn violated_in_time_without(rule: Rule, property: Property) {
    let setting = Setting { heartbeats: Heartbeats::OnTime, silences: false, stops: true, ..two_nodes(rule) };
    shortest_violation(&setting, property);
}

#[test]
fn without_a_comparison_of_epochs() {
    violated_without(Rule::WriteComparesEpoch, EPOCH);
    violated_without(Rule::WriteComparesEpoch, NO_FALL);
}

#[test]
fn with_a_comparison_that_locks_nothing() {
    violated_without(Rule::WriteLocksRow, EPOCH);
    violated_without(Rule::WriteLocksRow, SEQ);
    violated_without(Rule::WriteLocksRow, NO_FALL);
}

#[test]
fn without_idempotency_keys() {
    violated_without(Rule::WriteHasKey, ONCE);
}

#[test]
fn with_an_answer_before_the_commit() {
    violated_without(Rule::AnswerFollowsCommit, ACKNOWLEDGED);
}

#[test]
fn with_a_claim_that_raises_no_epoch() {
    violated_without(Rule::ClaimRaisesEpoch, WRITER);
}

#[test]
fn with_a_restart_that_raises_no_epoch() {
    violated_without(Rule::RestartRaisesEpoch, WRITER);
}

#[test]
fn with_a_claim_that_reads_before_it_writes() {
    violated_without(Rule::ClaimIsOneStatement, WRITER);
}

#[test]
fn with_a_release_that_compares_no_epoch() {
    violated_without(Rule::ReleaseComparesEpoch, HOLDER);
}

/// The fence refuses the writes, so nothing is wrong in the log; but a stop loses what it should have written.
#[test]
fn with_a_heartbeat_that_ends_before_its_writers() {
    violated_in_time_without(Rule::HeartbeatEndsLast, NOT_OVERTAKEN);
}

#[test]
fn with_claims_of_what_has_a_fresh_heartbeat() {
    violated_in_time_without(Rule::ClaimNeedsStaleHeartbeat, NOT_OVERTAKEN);
}
