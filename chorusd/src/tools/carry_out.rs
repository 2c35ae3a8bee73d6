//! From a call to its outcome: its arguments are read, its action judged, somebody asked where that is due, each decision
//! written down, and only then is it done.

use std::sync::Arc;

use chorus_proto::ToolCall;
use chorus_proto::methods::approvals::Detail;
use chorus_proto::methods::permissions::{Decision, Rule, Verdict};
use serde_json::{Map, Value};

use super::Scene;
use super::files::workspace_paths;
use super::shelf;
use super::tool::{Always, Outcome, Prepared};
use super::unconfined;
use crate::approvals::{Answer, Question, reason};
use crate::permissions::{Profile, WorkspacePaths};
use crate::store::catalog::Audit;

/// Whether somebody is to be asked about a call, as far as that is known before the calls ahead of it have run.
#[must_use]
pub async fn asks(call: &ToolCall, scene: &Scene) -> bool {
    match read(call, scene) {
        Ok(prepared) => judge(&prepared, scene).await.decision == Decision::Ask,
        Err(_) => false,
    }
}

/// Whether calls behind one of this tool wait until it is done.
#[must_use]
pub fn in_order(tool: &str) -> bool {
    shelf::find(tool).is_some_and(|tool| tool.in_order)
}

/// What the agent's profile says of a call.
async fn judge(Prepared { action, always, .. }: &Prepared, scene: &Scene) -> Verdict {
    let (profile, judged, workspace) = (Arc::clone(&scene.profile), action.clone(), scene.workspace());
    let mut verdict =
        aside(move || profile.judge_in(&judged, &workspace_paths(&workspace))).await.unwrap_or_else(|| Verdict {
            decision: Decision::Deny,
            rule: Rule::Shell { reason: "it could not be judged".into() },
            parts: Vec::new(),
        });
    if let (Rule::Always { .. }, Always::Beyond(why)) = (&verdict.rule, always) {
        verdict.decision = Decision::Ask;
        verdict.rule = Rule::Shell { reason: (*why).to_owned() };
    }
    unconfined::heed(&mut verdict, action, &scene.world.sandbox).await;
    verdict
}

/// Judges where a long command holds nobody else up; `None` if that ends early.
async fn aside<T: Send + 'static>(judge: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(judge).await.ok()
}

/// A call whose tool there is, and whose arguments fit; else what is wrong, for the model.
fn read(call: &ToolCall, scene: &Scene) -> Result<Prepared, String> {
    let Some(tool) = shelf::find(&call.name) else {
        let names = shelf::names(&scene.profile).join(", ");
        let there = if names.is_empty() { "there are none for you".into() } else { format!("there are: {names}") };
        return Err(format!("there is no tool {:?}; {there}", call.name));
    };
    if !call.params.get().trim_start().starts_with('{') {
        return Err(format!("the parameters of {} are no JSON object; call it again with one", call.name));
    }
    (tool.prepare)(&call.params, scene)
}

/// Carries a call out.
pub async fn carry_out(call: ToolCall, scene: Arc<Scene>) -> Outcome {
    let prepared = match read(&call, &scene) {
        Ok(prepared) => prepared,
        Err(wrong) => return Outcome::error(wrong),
    };
    let verdict = judge(&prepared, &scene).await;
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
        let hint = failure.hint.as_ref().map(|hint| format!("; for the owner: {hint}")).unwrap_or_default();
        return Outcome::error(format!("it was not done: the decision cannot be written down ({failure}){hint}"));
    }
    match decision {
        Decision::Allow => {}
        Decision::Deny => return Outcome::error(format!("{} is not allowed: {why}", prepared.action)),
        Decision::Ask => {
            let leads_to = prepared.ready.leads_to(&scene).await;
            if let Some(place) = &leads_to {
                let _ = scene.agreed.set(place.clone());
            }
            let question = Question {
                agent: scene.agent,
                agent_name: scene.agent_name.clone(),
                turn: scene.turn,
                call: call.id.clone(),
                action: prepared.action.clone(),
                verdict,
                details: details(&call, &prepared.action, leads_to.as_deref()),
                not_always: not_always(&prepared, &scene),
                requester: scene.requester.clone(),
            };
            // Whoever decides notes it.
            match scene.world.approvals.ask(question, &*scene.say, &scene.cancel).await {
                Ok(Answer::Approved { .. }) if denied_now(&prepared.action, &scene).await => {
                    let why = "the agent's permissions have changed since it was asked about";
                    let _ = note(row("deny", why, scene.requester.to_string())).await;
                    return Outcome::error(format!("{} is not allowed: {why}", prepared.action));
                }
                Ok(Answer::Approved { .. }) => {}
                Ok(Answer::Denied { why, .. }) => {
                    return Outcome::error(format!("{} was not approved: {why}", prepared.action));
                }
                Err(failure) => return Outcome::error(format!("nobody could be asked: {failure}")),
            }
        }
    }
    prepared.ready.run(scene).await
}

/// What the action does not say of a call: where it leads, and each argument that does not stand in it whole.
fn details(call: &ToolCall, action: &str, leads_to: Option<&str>) -> Vec<Detail> {
    let detail = |name: &str, text: String| Detail { name: name.to_owned(), text };
    let given: Map<String, Value> = serde_json::from_str(call.params.get()).unwrap_or_default();
    let said = |value: &Value| match value {
        Value::String(text) => (!action.contains(text.as_str())).then(|| text.clone()),
        Value::Null | Value::Bool(false) => None,
        Value::Object(_) | Value::Array(_) => serde_json::to_string_pretty(value).ok(),
        other => Some(other.to_string()),
    };
    let given = given.iter().filter_map(|(name, value)| Some(detail(name, said(value)?)));
    leads_to.map(|place| detail("to", place.to_owned())).into_iter().chain(given).collect()
}

/// Why an action cannot be approved for ever; `None`: it can.
fn not_always(Prepared { action, always, .. }: &Prepared, scene: &Scene) -> Option<String> {
    match always {
        Always::Can => {}
        Always::Never => return Some("what it does depends on more than the action says".into()),
        Always::Beyond(why) => return Some((*why).to_owned()),
    }
    let unconfined = unconfined::why(action, &scene.world.sandbox);
    let secret =
        scene.has_secret(action).then(|| "there is a secret in it, which would be kept in agent.json".to_owned());
    scene.profile.can_always(action).err().or(unconfined).or(secret)
}

/// Whether the agent's profile, as it is by now, denies what somebody was asked about for a while; there is none where the
/// agent is gone.
fn denied_by(action: &str, now: Option<&Profile>, workspace: &WorkspacePaths) -> bool {
    now.is_none_or(|profile| profile.judge_in(action, workspace).decision == Decision::Deny)
}

/// The same, for the agent of a scene.
async fn denied_now(action: &str, scene: &Scene) -> bool {
    let (action, now, workspace) = (action.to_owned(), (scene.profile_now)(), scene.workspace());
    aside(move || denied_by(&action, now.as_deref(), &workspace_paths(&workspace))).await.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Profiles;

    #[test]
    fn what_was_approved_is_denied_where_the_profile_denies_it_by_now() {
        let profiles = Profiles::default();
        let now = |name: &str| profiles.get(name).map(|profile| &**profile);
        let denied = |name: &str| denied_by("tool:bash:ls", now(name), &WorkspacePaths::default());
        assert_eq!(["open", "standard", "locked"].map(denied), [false, false, true]);
        assert!(denied("of an agent that is gone"));
    }
}
