//! `doctor`: what it sees, and what it makes anew.

mod checks;
mod damaged_catalog;
mod models;
mod rebuild;
mod size;

use std::collections::BTreeMap;

use chorus_proto::methods::doctor::{Check, DoctorResult, Verdict};
use chorus_tests::{Home, Output, ctl::chorusctl};

/// Runs `doctor` with `more` and reads what it says.
fn doctor(home: &Home, more: &[&str]) -> (i32, DoctorResult) {
    let Output { status, stdout, stderr } = chorusctl(home, ["doctor", "--json"].iter().chain(more));
    let found = serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}{stderr}"));
    (status, found)
}

/// The checks that are neither good nor mere information.
fn trouble(found: &DoctorResult) -> BTreeMap<&str, &Check> {
    let bad = |check: &&Check| matches!(check.verdict, Verdict::Warn | Verdict::Fail) && check.name != "free space";
    found.checks.iter().filter(bad).map(|check| (&*check.name, check)).collect()
}
