//! Finds permission rules that allow less than they seem to: a rule that matches any program allows only the programs
//! of the reviewed table.

use chorus_base::error::Result;
use chorus_permissions::{Profile, Profiles};
use chorus_proto::methods::doctor::{Check, Verdict};

use super::{check, check_with, join_some};
use crate::ops::Ops;

const CHECK_NAME: &str = "permission rules";

/// Lists the rules in configured profiles and in agents' own that match programs without naming them.
pub(super) async fn check_rules(ops: &Ops) -> Result<Check> {
    let config = ops.defaults();
    let named = config.profiles.iter().filter(|(name, _)| !Profiles::is_preset(name));
    let mut found: Vec<String> = named.flat_map(|(name, profile)| rules_without_program(name, profile)).collect();
    for entry in ops.agent_resolver.all().await? {
        if let (true, Ok(profile)) = (entry.permissions.is_object(), &entry.settings.profile) {
            found.extend(rules_without_program(&entry.settings.name, profile));
        }
    }
    if found.is_empty() {
        return Ok(check(CHECK_NAME, Verdict::Ok, "every command rule names its programs"));
    }
    let text = format!("these rules match any program, so most commands need approval: {}", join_some(&found));
    Ok(check_with(
        CHECK_NAME,
        Verdict::Info,
        text,
        "name the programs in `allow`, e.g. 'tool:bash:(cargo|npm run) .*' (docs/PERMISSIONS.md)",
    ))
}

/// Returns `careful allow[0]` for each such rule of a profile.
fn rules_without_program(name: &str, profile: &Profile) -> Vec<String> {
    profile.rules_matching_any_program().map(|index| format!("{name} allow[{index}]")).collect()
}
