//! Says in a sentence what an entry of the audit log records: who decided what, and why.

use chorus_proto::methods::audit::AuditRow;

/// An entry in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub text: String,
    /// The words in it that say how it was decided.
    pub verb: String,
    /// The reason, empty if there is none.
    pub reason: String,
}

/// Describes an entry. Its texts are not sanitized.
pub(super) fn describe(row: &AuditRow) -> Sentence {
    let (agent, user) = (row.agent.as_str(), name_requester(&row.user));
    let (subject, object) = split_action(&row.action);
    let sentence = |before: &str, verb: &str, after: String, reason: String| {
        let text = [before, verb, &after].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        Sentence { text, verb: verb.to_owned(), reason }
    };
    let for_user = if row.user == "nobody" { String::new() } else { format!("on behalf of {user}") };
    let to_use = format!("to use {subject}{object}");
    let of_agent = format!("{subject} for {agent}{object}");
    let rule = rule_reason(&row.rule);
    let ruled =
        [rule.clone(), for_user.clone()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    match row.decision.as_str() {
        // Not a tool: somebody used a command, and this is the right that permits it.
        "allow" if !row.action.starts_with("tool:") => {
            sentence(&user, "was allowed", format!("{} ({agent})", row.action), row.rule.clone())
        }
        "allow" => sentence(agent, "was allowed", to_use, ruled),
        "deny" => sentence(agent, "was not allowed", to_use, ruled),
        "ask" => sentence(agent, "had to ask", to_use, ruled),
        "approved" => sentence(&user, "approved", of_agent, asked_reason(&rule)),
        "approved_always" => sentence(&user, "permanently approved", of_agent, asked_reason(&rule)),
        "approved_pattern" => sentence(&user, "permanently approved", of_agent + " and its kind", asked_reason(&rule)),
        "approved_turn" => sentence(&user, "approved", of_agent + " for the whole turn", turn_reason(&rule)),
        "refused" => sentence(&user, "denied", of_agent, asked_reason(&rule)),
        "expired" => sentence("", "nobody answered in time:", of_agent, asked_reason(&rule)),
        "withdrawn" => sentence("", "withdrawn before an answer:", of_agent, asked_reason(&rule)),
        "lost" => sentence("a restart", "cancelled", format!("the question of {agent}: {subject}{object}"), rule),
        "changed" => describe_change(row, &user, &for_user),
        "not_changed" => {
            sentence(&format!("{} was", changed_thing(row)), "not changed", String::new(), row.rule.clone())
        }
        other => sentence(agent, other, row.action.clone(), ruled),
    }
}

fn describe_change(row: &AuditRow, user: &str, for_user: &str) -> Sentence {
    let own = row.action.starts_with("tool:");
    let thing = changed_thing(row);
    let (who, verb, thing) = match row.action.as_str() {
        "agent.init" => (user, "created", format!("the agent {}", row.agent)),
        "memory.add" => (user, "added", format!("a memory of {}", row.agent)),
        "memory.remove" => (user, "removed", format!("a memory of {}", row.agent)),
        "schedule.add" => (user, "added", format!("a schedule of {}", row.agent)),
        "schedule.remove" => (user, "removed", format!("a schedule of {}", row.agent)),
        _ if own => (row.agent.as_str(), "changed", thing),
        _ => (user, "changed", thing),
    };
    let reason = if own { for_user.to_owned() } else { format!("with {}", row.rule) };
    Sentence { text: format!("{who} {verb} {thing}"), verb: verb.to_owned(), reason }
}

/// Names what was changed: `the model of docs`, `the setting timezone`.
fn changed_thing(row: &AuditRow) -> String {
    let agent = &row.agent;
    let own = row.action.strip_prefix("tool:self_edit:");
    let name = own.or_else(|| row.action.strip_prefix("agent.config:"));
    match (name.map(|name| name.split(':').next().unwrap_or(name)), row.action.strip_prefix("settings:")) {
        (Some("docs"), _) => {
            format!("its note {}", own.and_then(|name| name.strip_prefix("docs:")).unwrap_or_default())
        }
        (Some(name), _) if own.is_some() => format!("its own {}", name.replace('_', " ")),
        (Some(name), _) => format!("the {} of {agent}", name.replace('_', " ")),
        (None, Some(setting)) => format!("the setting {setting}"),
        (None, None) if agent.is_empty() => row.action.clone(),
        (None, None) => format!("{} of {agent}", row.action),
    }
}

/// Splits an action into the tool's name and `: ` with its argument.
fn split_action(action: &str) -> (&str, String) {
    let rest = action.strip_prefix("tool:").unwrap_or(action);
    match rest.split_once(':') {
        Some((tool, argument)) if !argument.is_empty() => (tool, format!(": {argument}")),
        Some((tool, _)) => (tool, String::new()),
        None => (rest, String::new()),
    }
}

/// Formats the rule of a decision: `allow[0] tool:bash:git .*` as `rule allow[0] tool:bash:git .*`.
fn rule_reason(rule: &str) -> String {
    let list = rule.split('[').next().unwrap_or_default();
    let is_rule = rule.contains('[') && ["allow", "deny", "ask", "always"].contains(&list);
    if is_rule { format!("rule {rule}") } else { rule.to_owned() }
}

/// Formats why a question was asked.
fn asked_reason(rule: &str) -> String {
    match rule.strip_prefix("needs approval because ") {
        Some(reason) => format!("asked because {reason}"),
        None if rule.is_empty() => String::new(),
        None if rule.starts_with("rule ") => format!("asked because of {rule}"),
        None => format!("asked because {rule}"),
    }
}

/// Formats why an action was approved with its turn: the question at which the turn was approved, or why that was asked.
fn turn_reason(rule: &str) -> String {
    if rule.starts_with("the whole turn ") { rule.to_owned() } else { asked_reason(rule) }
}

/// Formats who decided: `discord:7` as `Discord user 7`.
fn name_requester(user: &str) -> String {
    user.strip_prefix("discord:").map_or_else(|| user.to_owned(), |id| format!("Discord user {id}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(action: &str, decision: &str, rule: &str, user: &str) -> String {
        let row = json!({"id": 1, "at": "2026-01-02T03:04:05Z", "agent_id": "00000000-0000-0000-0000-000000000000",
            "agent": "docs", "turn_id": null, "action": action, "decision": decision, "rule": rule, "user": user,
            "old": null, "new": null, "hash": ""});
        let row = serde_json::from_value(row).map(|row| describe(&row));
        row.map(|said| format!("{} | {}", said.text, said.reason)).unwrap_or_default()
    }

    #[test]
    fn entries_are_sentences() {
        for (action, decision, rule, user, said) in [
            (
                "tool:bash:git status",
                "allow",
                "allow[0] tool:bash:git .*",
                "owner",
                "docs was allowed to use bash: git status | rule allow[0] tool:bash:git .*, on behalf of owner",
            ),
            (
                "tool:git:init",
                "deny",
                "no rule matches it",
                "nobody",
                "docs was not allowed to use git: init | no rule matches it",
            ),
            (
                "tool:bash:rm x",
                "refused",
                "needs approval because it writes",
                "discord:7",
                "Discord user 7 denied bash for docs: rm x | asked because it writes",
            ),
            (
                "tool:list_models:",
                "ask",
                "ask[1] tool:.*",
                "owner",
                "docs had to ask to use list_models | rule ask[1] tool:.*, on behalf of owner",
            ),
            (
                "agent.config:system_prompt",
                "changed",
                "agent config",
                "owner",
                "owner changed the system prompt of docs | with agent config",
            ),
            (
                "tool:self_edit:model:a/b",
                "changed",
                "…",
                "discord:7",
                "docs changed its own model | on behalf of Discord user 7",
            ),
            (
                "settings:timezone",
                "changed",
                "settings set",
                "owner",
                "owner changed the setting timezone | with settings set",
            ),
            (
                "agent.config:model",
                "not_changed",
                "disk full",
                "owner",
                "the model of docs was not changed | disk full",
            ),
            ("tool:bash:ls", "of_the_future", "", "owner", "docs of_the_future tool:bash:ls | on behalf of owner"),
        ] {
            assert_eq!(described(action, decision, rule, user), said);
        }
    }
}
