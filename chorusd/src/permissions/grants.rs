//! Who may give an agent which permissions.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::requester::{Requester, SERVER_OWNER};

/// The profile that the owner of a server may grant by that.
const LOCKED_PROFILE: &str = "locked";

/// `[permission_grants]`: for each role the profiles that its members may grant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    by_role: BTreeMap<String, Vec<String>>,
}

impl Grants {
    /// Lets members of `role` grant these profiles.
    pub fn add(&mut self, role: &str, profiles: Vec<String>) {
        self.by_role.insert(role.to_owned(), profiles);
    }

    /// Each role with the profiles that its members may grant, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.by_role.iter().map(|(role, profiles)| (role.as_str(), profiles.as_slice()))
    }

    /// Whether `who` may give an agent these permissions: the name of a profile, or one inline. The owner grants anything, a
    /// person what their roles list, and where no person asked nothing is granted.
    ///
    /// # Errors
    /// Why not.
    pub fn check_grant(&self, who: &Requester, permissions: &Value) -> Result<(), String> {
        match (who, permissions.as_str()) {
            (Requester::Owner, _) => Ok(()),
            (Requester::Nobody, _) => Err("no person asked for this turn, and without one nothing is granted".into()),
            (Requester::Person { name, .. }, None) => {
                Err(format!("{name} may grant profiles by their name only; one of its own is granted by the owner"))
            }
            (Requester::Person { name, roles, .. }, Some(profile)) => {
                let granted: Vec<&str> =
                    roles.iter().filter_map(|role| self.by_role.get(role)).flatten().map(String::as_str).collect();
                // It grants nothing: whoever owns a server may take everything from its agents.
                let locked = profile == LOCKED_PROFILE && roles.iter().any(|role| role == SERVER_OWNER);
                if locked || granted.contains(&profile) {
                    return Ok(());
                }
                let may = if granted.is_empty() { "none".to_owned() } else { granted.join(", ") };
                Err(format!("{name} may not grant the profile `{profile}` (those that their roles may: {may})"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_grants_what_they_may_and_nobody_grants_nothing() {
        let mut grants = Grants::default();
        grants.add("admin", vec!["open".into(), "standard".into(), "locked".into()]);
        grants.add("helper", vec!["locked".into()]);
        let person = |roles: &[&str]| Requester::Person {
            id: "1".into(),
            name: "Ada".into(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        };
        let own = json!({"allow": ["tool:view:.*"]});
        for (who, wanted, may) in [
            (Requester::Owner, &json!("open"), true),
            (Requester::Owner, &own, true),
            (person(&["admin"]), &json!("open"), true),
            (person(&["helper", "admin"]), &json!("open"), true),
            (person(&["helper"]), &json!("locked"), true),
            (person(&["helper"]), &json!("standard"), false),
            (person(&["Admin"]), &json!("locked"), false),
            (person(&["nobody knows it"]), &json!("locked"), false),
            (person(&[]), &json!("locked"), false),
            (person(&["admin"]), &own, false),
            (person(&["admin"]), &json!(null), false),
            (Requester::Nobody, &json!("locked"), false),
            (Requester::Nobody, &own, false),
        ] {
            assert_eq!(grants.check_grant(&who, wanted).is_ok(), may, "{who} {wanted}");
        }
        let why = grants.check_grant(&person(&["helper"]), &json!("open")).unwrap_err();
        assert_eq!(why, "Ada may not grant the profile `open` (those that their roles may: locked)");
    }
}
