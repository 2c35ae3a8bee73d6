//! From a call to its outcome: its arguments are read, its action judged, somebody asked where that is due, each decision
//! written down, and only then is it done.

use std::sync::Arc;

use chorus_proto::ToolCall;
use chorus_proto::methods::permissions::{Decision, Rule, Verdict};

use super::Scene;
use super::shelf;
use super::tool::Outcome;
use crate::approvals::{Answer, Question};
use crate::store::catalog::Audit;

/// Carries a call out.
pub async fn carry_out(call: ToolCall, scene: Arc<Scene>) -> Outcome {
    let Some(tool) = shelf::find(&call.name) else {
        let names = shelf::names(&scene.profile).join(", ");
        return Outcome::error(format!("there is no tool {:?}; there are: {names}", call.name));
    };
    if !call.params.get().trim_start().starts_with('{') {
        return Outcome::error(format!("the parameters of {} are no JSON object; call it again with one", call.name));
    }
    let prepared = match (tool.prepare)(&call.params, &scene) {
        Ok(prepared) => prepared,
        Err(wrong) => return Outcome::error(wrong),
    };
    let mut verdict = scene.profile.judge(&prepared.action);
    if runs_commands(&prepared.action) {
        scene.world.sandbox.known().await;
        ask_where_unconfined(&mut verdict, scene.world.sandbox.missing());
    }
    let why = reason(&verdict.rule);
    let row = |decision: &str, rule: &str, user: String| Audit {
        at: scene.world.clock.now(),
        agent: scene.agent,
        agent_name: scene.agent_name.clone(),
        turn: Some(scene.turn),
        action: prepared.action.clone(),
        decision: decision.into(),
        rule: rule.into(),
        user,
        old: None,
        new: None,
    };
    let note = |row| scene.world.store.catalog.audit(row);
    let decision = verdict.decision;
    if let Err(failure) = note(row(decision.as_str(), &why, scene.requester.to_string())).await {
        return Outcome::error(format!("it was not done: the decision cannot be written down ({failure})"));
    }
    match decision {
        Decision::Allow => {}
        Decision::Deny => return Outcome::error(format!("{} is not allowed: {why}", prepared.action)),
        Decision::Ask => {
            let question = Question {
                agent: scene.agent,
                agent_name: scene.agent_name.clone(),
                turn: scene.turn,
                call: call.id.clone(),
                action: prepared.action.clone(),
                verdict,
                requester: scene.requester.clone(),
            };
            // Whoever decides notes it.
            match scene.world.approvals.ask(question, &*scene.say, &scene.cancel).await {
                Ok(Answer::Approved { .. }) => {}
                Ok(Answer::Denied { why, .. }) => {
                    return Outcome::error(format!("{} was not approved: {why}", prepared.action));
                }
                Err(failure) => return Outcome::error(format!("nobody could be asked: {failure}")),
            }
        }
    }
    (prepared.run)(scene).await
}

/// Whether carrying an action out runs a command.
fn runs_commands(action: &str) -> bool {
    ["tool:bash:", "tool:git:"].iter().any(|prefix| action.starts_with(prefix))
}

/// Nothing is run without a sandbox unless somebody said so, whatever the profile allows. `missing`: why there is none.
fn ask_where_unconfined(verdict: &mut Verdict, missing: Option<&str>) {
    if let (Decision::Allow, Some(missing)) = (verdict.decision, missing) {
        verdict.decision = Decision::Ask;
        verdict.rule = Rule::Shell { reason: format!("commands cannot be confined here: {missing}") };
    }
}

/// Why, for a person.
fn reason(rule: &Rule) -> String {
    match rule {
        Rule::Pattern { list, index, pattern } => format!("{}[{index}] {pattern}", list.as_str()),
        Rule::Default => "no rule matches it".into(),
        Rule::Shell { reason } => format!("it is asked about because {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_sandbox_what_is_allowed_is_asked_about_and_what_is_denied_stays_so() {
        let verdict = |decision| Verdict { decision, rule: Rule::Default, parts: Vec::new() };
        for (before, missing, after) in [
            (Decision::Allow, None, Decision::Allow),
            (Decision::Allow, Some("there is none"), Decision::Ask),
            (Decision::Ask, Some("there is none"), Decision::Ask),
            (Decision::Deny, Some("there is none"), Decision::Deny),
        ] {
            let mut judged = verdict(before);
            ask_where_unconfined(&mut judged, missing);
            assert_eq!(judged.decision, after);
            assert_eq!(reason(&judged.rule).contains("there is none"), before != after);
        }
        assert!(runs_commands("tool:bash:ls") && runs_commands("tool:git:init") && !runs_commands("tool:view:x"));
    }
}
