//! Rules for who may give an agent which permissions.

use std::collections::BTreeMap;

use chorus_base::requester::{Requester, SERVER_OWNER};
use serde_json::Value;

/// The profile that the owner of a Discord server may always grant.
const LOCKED_PROFILE: &str = "locked";

/// `[permission_grants]`: maps each role to the profiles that its members may grant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    by_role: BTreeMap<String, Vec<String>>,
}

impl Grants {
    /// Sets the profiles that members of `role` may grant.
    pub fn add(&mut self, role: &str, profiles: Vec<String>) {
        self.by_role.insert(role.to_owned(), profiles);
    }

    /// Iterates over the roles, sorted by name, with the profiles that their members may grant.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.by_role.iter().map(|(role, profiles)| (role.as_str(), profiles.as_slice()))
    }

    /// Checks that `who` may give an agent these permissions (a profile's name or an inline profile). The owner may
    /// grant anything, a Discord member what their roles list, and a turn without a person nothing.
    ///
    /// # Errors
    /// The reason for the refusal, as a text for people.
    pub fn check_grant(&self, who: &Requester, permissions: &Value) -> Result<(), String> {
        match (who, permissions.as_str()) {
            (Requester::Owner, _) => Ok(()),
            (Requester::Nobody, _) => Err("nothing can be granted: no person requested this turn".into()),
            (Requester::Person { name, .. }, None) => {
                Err(format!("{name} can only grant named profiles; only the owner can grant a custom one"))
            }
            (Requester::Person { name, roles, .. }, Some(profile)) => {
                let granted: Vec<&str> =
                    roles.iter().filter_map(|role| self.by_role.get(role)).flatten().map(String::as_str).collect();
                // `locked` grants nothing: the owner of a server may always reduce what its agents can do.
                let locked = profile == LOCKED_PROFILE && roles.iter().any(|role| role == SERVER_OWNER);
                if locked || granted.contains(&profile) {
                    return Ok(());
                }
                let may = if granted.is_empty() { "none".to_owned() } else { granted.join(", ") };
                Err(format!("{name} is not allowed to grant the profile `{profile}` (allowed by their roles: {may})"))
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
        assert_eq!(why, "Ada is not allowed to grant the profile `open` (allowed by their roles: locked)");
    }
}
