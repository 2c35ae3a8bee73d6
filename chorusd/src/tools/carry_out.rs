//! From a call to its outcome: its arguments are read, its action judged, somebody asked where that is due, each decision
//! written down, and only then is it done.

use std::sync::Arc;

use chorus_proto::ToolCall;
use chorus_proto::methods::permissions::Decision;

use super::Scene;
use super::shelf;
use super::tool::Outcome;
use crate::approvals::{Answer, Question, reason};
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
    let verdict = scene.profile.judge(&prepared.action);
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
                not_always: scene.profile.can_always(&prepared.action).err(),
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
