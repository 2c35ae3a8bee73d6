//! The operation `permissions.remove_rule`.

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::AuditDecision;
use chorus_config::agent::PERMISSION_RULES_KEY;
use chorus_permissions::agent_rules_to_json;
use chorus_proto::ErrorKind;
use chorus_proto::methods::permissions::{AgentRule, RemoveRuleParams, RemoveRuleResult};

use super::usable_profile;
use crate::ops::agent::AgentEditor;
use crate::ops::resolve_agent::unknown_agent_error;

/// Removes a rule of an agent. The change is recorded in the audit log before it is made.
///
/// # Errors
/// `agent_not_found`, `not_found`, `conflict` if the rule of this number has another text, or an error of writing
/// agent.json or the audit log; nothing is removed then.
pub async fn remove_rule(editor: &AgentEditor, params: RemoveRuleParams) -> Result<RemoveRuleResult> {
    remove_rule_as(editor, params, &Requester::Owner).await
}

/// Like [`remove_rule`], on behalf of `by`.
///
/// # Errors
/// As [`remove_rule`].
pub async fn remove_rule_as(
    editor: &AgentEditor,
    params: RemoveRuleParams,
    by: &Requester,
) -> Result<RemoveRuleResult> {
    let agents = &editor.agents;
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let _one_at_a_time = agents.lock.lock().await;
    let name = &agent.settings.name;
    let agent = agents.index.by_id(agent.settings.id).ok_or_else(|| unknown_agent_error(&agents.index, name))?;
    let agent = agents.reload_locked(agent).await?;
    let name = agent.settings.name.clone();
    let mut rules: Vec<AgentRule> = usable_profile(&agent.settings)?.agent_rules().cloned().collect();
    let found = rules.iter().position(|rule| rule.number == params.number).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("{name} has no rule {}", params.number))
            .hint(format!("list its rules: chorusctl permissions rules {name}"))
    })?;
    if params.rule.is_some_and(|text| rules.get(found).is_none_or(|rule| rule.rule != text)) {
        return Err(Error::new(ErrorKind::Conflict, format!("rule {} of {name} is now another one", params.number))
            .hint(format!("list its rules: chorusctl permissions rules {name}")));
    }
    let removed = rules.remove(found);
    let row = AuditDecision {
        at: editor.clock.now(),
        agent: agent.settings.id,
        agent_name: name.clone(),
        turn: None,
        action: format!("agent.config:{PERMISSION_RULES_KEY}"),
        decision: "changed".into(),
        rule: "permissions rules".into(),
        user: by.to_string(),
        old: None,
        new: None,
    };
    editor.set_rules(&agent, agent_rules_to_json(&rules), Some(row)).await?;
    Ok(RemoveRuleResult { agent: name, removed })
}
