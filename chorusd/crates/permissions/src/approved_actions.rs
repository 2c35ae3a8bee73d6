//! Actions that a person approved for good: the `always` list of a profile, which matches them literally.

use chorus_proto::methods::permissions::Decision;
use serde_json::{Value, json};

use super::profile::Profile;
use super::profile_spec::{MAX_PATTERN_LEN, MAX_RULES};
use super::shell::WorkspacePaths;

impl Profile {
    /// Checks that an entry in `always` could allow this action.
    ///
    /// # Errors
    /// The reason why it could not, as a text for people.
    pub fn ensure_always_allowable(&self, action: &str) -> Result<(), String> {
        let (verdict, guard) = self.judge_by_patterns(action, &WorkspacePaths::default());
        let spec = self.spec();
        match (verdict.decision, guard) {
            (Decision::Deny, _) => Err("the profile denies it".into()),
            (_, Some(guard)) => {
                Err(format!("a command that cannot be fully analyzed needs approval each time: {guard}"))
            }
            _ if action.len() > MAX_PATTERN_LEN => Err(format!("it is longer than {MAX_PATTERN_LEN} bytes")),
            _ if spec.deny.len() + spec.ask.len() + spec.allow.len() + spec.always.len() >= MAX_RULES => {
                Err(format!("the profile already has {MAX_RULES} rules"))
            }
            _ => Ok(()),
        }
    }

    /// Returns an agent's `permissions` with this action added to `always`. A named profile is copied inline first, so
    /// that other agents that use it keep theirs. Examples that expect another decision for the action are removed.
    ///
    /// # Errors
    /// The reason that [`Profile::ensure_always_allowable`] returns.
    pub fn with_always_allowed(&self, permissions: &Value, action: &str) -> Result<Value, String> {
        self.ensure_always_allowable(action)?;
        let mut own = if permissions.is_object() { permissions.clone() } else { self.spec().to_json() };
        if let Some(map) = own.as_object_mut() {
            match map.get_mut("always").and_then(Value::as_array_mut) {
                Some(always) if always.iter().any(|one| one == action) => {}
                Some(always) => always.push(action.into()),
                None => {
                    map.insert("always".into(), json!([action]));
                }
            }
            if let Some(examples) = map.get_mut("examples").and_then(Value::as_array_mut) {
                examples.retain(|example| example.get("action").and_then(Value::as_str) != Some(action));
            }
        }
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Profiles;
    use super::*;

    fn decision(profiles: &Profiles, permissions: &Value, action: &str) -> Decision {
        profiles.resolve(permissions).unwrap().judge(action).decision
    }

    #[test]
    fn exactly_this_action_is_allowed_from_then_on() {
        let profiles = Profiles::default();
        let standard = profiles.get("standard").unwrap();
        for action in ["tool:bash:cargo test && ls", "tool:git:push origin main", "tool:remember:a.*b (c"] {
            let own = standard.with_always_allowed(&"standard".into(), action).unwrap();
            assert_eq!(decision(&profiles, &own, action), Decision::Allow, "{action}");
            for other in [format!("{action} "), format!("{action}x"), action[..action.len() - 1].to_owned()] {
                assert_ne!(decision(&profiles, &own, &other), Decision::Allow, "{other}");
            }
            let twice = profiles.resolve(&own).unwrap().with_always_allowed(&own, "tool:bash:pwd").unwrap();
            assert_eq!(decision(&profiles, &twice, action), Decision::Allow);
            assert_eq!(twice["always"], json!([action, "tool:bash:pwd"]));
        }
        let own = standard.with_always_allowed(&"standard".into(), "tool:bash:cargo test && ls").unwrap();
        assert_eq!(decision(&profiles, &own, "tool:bash:ls"), Decision::Ask, "a part of it is another action");
    }

    #[test]
    fn what_is_denied_or_cannot_be_seen_through_is_refused() {
        let profiles = Profiles::default();
        let standard = profiles.get("standard").unwrap();
        let refused = |action: &str| standard.with_always_allowed(&"standard".into(), action).unwrap_err();
        assert!(refused("tool:bash:python x.py").contains("needs approval each time"));
        assert!(refused("tool:bash:ls $x").contains("needs approval each time"));
        assert!(refused("tool:unheard_of:x").contains("denies"));
        assert!(refused(&format!("tool:bash:echo {}", "a".repeat(MAX_PATTERN_LEN))).contains("longer"));
        // An entry that was written by hand has no effect.
        for action in ["tool:bash:ls $x", "tool:bash:python x.py", "tool:unheard_of:x"] {
            let own = json!({"always": [action], "ask": ["tool:bash:.*"]});
            assert_ne!(decision(&profiles, &own, action), Decision::Allow, "{action}");
        }
    }

    #[test]
    fn an_inline_profile_keeps_its_keys_and_its_other_examples() {
        let profiles = Profiles::default();
        let before = json!({"ask": ["tool:bash:.*"], "bash": "whole",
            "examples": [{"action": "tool:bash:ls", "decision": "ask"}, {"action": "tool:bash:rm", "decision": "ask"}]});
        let own = profiles.resolve(&before).unwrap().with_always_allowed(&before, "tool:bash:ls").unwrap();
        assert_eq!(
            own,
            json!({"ask": ["tool:bash:.*"], "bash": "whole", "always": ["tool:bash:ls"],
            "examples": [{"action": "tool:bash:rm", "decision": "ask"}]})
        );
        assert_eq!(decision(&profiles, &own, "tool:bash:ls"), Decision::Allow);
    }
}
