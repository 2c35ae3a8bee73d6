//! Actions that a person approved for good, which match literally: rules of an agent, or the `always` list of a profile,
//! where earlier releases kept them.

use chorus_proto::methods::permissions::Decision;

use super::profile::Profile;
use super::profile_spec::{MAX_PATTERN_LEN, MAX_RULES};
use super::shell::WorkspacePaths;

impl Profile {
    /// Returns the reason why no rule can allow a command, if there is one: it cannot be seen through. The text continues
    /// "asked because".
    #[must_use]
    pub fn guard_reason(&self, action: &str) -> Option<String> {
        self.judge_by_patterns(action, &WorkspacePaths::default()).1
    }

    /// Checks that a rule of the agent for exactly this action would allow it.
    ///
    /// # Errors
    /// The reason why it could not, as a text for people.
    pub fn ensure_always_allowable(&self, action: &str) -> Result<(), String> {
        let (verdict, guard) = self.judge_by_patterns(action, &WorkspacePaths::default());
        match (verdict.decision, guard) {
            (Decision::Deny, _) => Err("the profile denies it".into()),
            (_, Some(guard)) => {
                Err(format!("a command that cannot be fully analyzed needs approval each time: {guard}"))
            }
            _ if action.len() > MAX_PATTERN_LEN => Err(format!("it is longer than {MAX_PATTERN_LEN} bytes")),
            _ if self.agent_rules().count() >= MAX_RULES => {
                Err(format!("the agent already has {MAX_RULES} rules (remove one: chorusctl permissions rules)"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::permissions::{AgentRuleKind, Rule};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::super::Profiles;
    use super::*;

    /// The decision on `action` after `rule` was approved for good.
    fn decision(permissions: &Value, rule: &str, action: &str) -> Decision {
        let profile = Profiles::default().resolve(permissions).unwrap();
        let rules = profile.extended_agent_rules(
            AgentRuleKind::Action,
            &[rule.to_owned()],
            (Timestamp::UNIX_EPOCH, "owner"),
            None,
        );
        profile.with_agent_rules(rules).judge(action).decision
    }

    #[test]
    fn exactly_this_action_is_allowed_from_then_on() {
        let standard = json!("standard");
        for action in ["tool:bash:cargo test && ls", "tool:git:push origin main", "tool:remember:a.*b (c"] {
            assert_eq!(decision(&standard, action, action), Decision::Allow, "{action}");
            for other in [format!("{action} "), format!("{action}x"), action[..action.len() - 1].to_owned()] {
                assert_ne!(decision(&standard, action, &other), Decision::Allow, "{other}");
            }
        }
        let part = decision(&standard, "tool:bash:cargo test && ls", "tool:bash:ls");
        assert_eq!(part, Decision::Ask, "a part of it is another action");
    }

    #[test]
    fn what_is_denied_or_cannot_be_seen_through_is_refused() {
        let profiles = Profiles::default();
        let standard = profiles.get("standard").unwrap();
        let refused = |action: &str| standard.ensure_always_allowable(action).unwrap_err();
        assert!(refused("tool:bash:python x.py").contains("needs approval each time"));
        assert!(refused("tool:bash:ls $x").contains("needs approval each time"));
        assert!(refused("tool:unheard_of:x").contains("denies"));
        assert!(refused(&format!("tool:bash:echo {}", "a".repeat(MAX_PATTERN_LEN))).contains("longer"));
        // An entry that was written by hand has no effect.
        for action in ["tool:bash:ls $x", "tool:bash:python x.py", "tool:unheard_of:x"] {
            let asking = json!({"ask": ["tool:bash:.*"]});
            assert_ne!(decision(&asking, action, action), Decision::Allow, "{action}");
            let own = json!({"always": [action], "ask": ["tool:bash:.*"]});
            assert_ne!(profiles.resolve(&own).unwrap().judge(action).decision, Decision::Allow, "{action}");
        }
    }

    #[test]
    fn a_profile_with_a_list_of_its_own_still_allows_what_is_in_it() {
        let own = json!({"ask": ["tool:bash:.*"], "always": ["tool:bash:ls"]});
        let profile = Profiles::default().resolve(&own).unwrap();
        assert_eq!(profile.judge("tool:bash:ls").rule, Rule::Always { index: 0 });
    }
}
