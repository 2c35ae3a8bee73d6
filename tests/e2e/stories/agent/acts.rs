//! The story, act by act.

use std::fs;

use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::methods::tasks::{List, ListParams};
use chorus_proto::{EventType, Message};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{API_KEY, Response};
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::{MODELS, Story, bash, create, view};
use crate::search::wait_until_complete;
use crate::tools::git::git;
use crate::tools::git::push::bare;

const CHECK: &str = "#!/bin/sh\ntest \"$(sh add.sh 1 2)\" = 3 && echo passed || { echo failed; exit 1; }\n";

fn texts(results: &[Message]) -> Vec<&str> {
    results.iter().map(|result| result.content.as_str()).collect()
}

#[track_caller]
fn fine(results: &[Message]) {
    assert!(results.iter().all(|result| !result.is_error), "{:?}", texts(results));
}

#[test]
fn an_agent_does_its_work_and_all_of_it_is_written_down() {
    for model in MODELS {
        let story = Story::new(model);
        it_had_a_conversation_before(&story);
        it_edits_and_tests(&story);
        it_asks_for_a_push(&story);
        it_is_refused_what_lies_outside(&story);
        it_changes_itself(&story);
        it_hears_that_its_build_ended(&story);
        it_finds_again_and_tells_another(&story);
        every_decision_is_in_the_log(&story);
        events_told_it_all(&story);
        locked_it_only_reads(&story);
    }
}

fn it_had_a_conversation_before(story: &Story) {
    // Too short for a model to be asked for its summary.
    story.client().append("a", "Which sums are there?");
    chorusctl(&story.home, ["--agent", "a", "context", "save"]).expect_success();
    story
        .client()
        .call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false })
        .expect("context.clear");
}

fn it_edits_and_tests(story: &Story) {
    let results = story.turn(
        &[
            &[create("add.sh", "echo $(($1 - $2))\n"), create("check.sh", CHECK)],
            &[bash("chmod +x check.sh"), bash("./check.sh")],
            &[
                ("str_replace", json!({"path": "add.sh", "old_str": "$1 - $2", "new_str": "$1 + $2"})),
                bash("./check.sh"),
                view("add.sh"),
            ],
        ],
        &[("tool:bash:chmod +x check.sh", false), ("tool:bash:./check.sh", true)],
    );
    assert_eq!(texts(&results)[3], "failed\n[exit status 1]");
    let worked = |text: &str| results.iter().any(|result| !result.is_error && result.content.contains(text));
    assert!(worked("passed\n[exit status 0]") && worked("echo $(($1 + $2))"), "{:?}", texts(&results));
    // And in another turn: always is for ever.
    fine(&story.turn(&[&[bash("./check.sh")]], &[]));
}

fn it_asks_for_a_push(story: &Story) {
    let workspace = story.home.agent_dir("a").join("workspace");
    let (served, info) = (workspace.join("served.git"), workspace.join(".git/info"));
    bare(&served);
    fs::create_dir_all(&info).expect("a directory");
    fs::write(info.join("exclude"), "served.git\n").expect("what is no part of it");
    git(&workspace, &["remote", "add", "origin", "./served.git"]);
    let results = story.turn(
        &[&[
            ("git_commit", json!({"message": "Add"})),
            ("git_push", json!({"remote": "origin", "branch": "main"})),
            ("git_log", json!({"count": 1})),
        ]],
        &[("tool:git:push origin main", false)],
    );
    fine(&results);
    assert_eq!(git(&served, &["rev-parse", "main"]), git(&workspace, &["rev-parse", "main"]));
}

fn it_is_refused_what_lies_outside(story: &Story) {
    let other = story.home.agent_dir("b").join("workspace/private.txt");
    fs::write(&other, "of b alone").expect("a file of another agent");
    let key = format!("cat {}", story.server.key_file().display());
    let results = story.turn(
        &[&[view("../agent.json"), view("/etc/passwd"), view(other.to_str().expect("a path")), bash(&key)]],
        &[(&format!("tool:bash:{key}"), false)],
    );
    assert!(results.iter().all(|result| result.is_error), "{:?}", texts(&results));
    for (result, why) in results.iter().zip(["is outside", "is outside", "is outside", "No such file"]) {
        assert!(result.content.contains(why), "{}", result.content);
    }
    for known in [API_KEY, "of b alone", "root:"] {
        assert!(!story.request().text.contains(known), "the model has read {known}");
    }
}

fn it_changes_itself(story: &Story) {
    let results = story.turn(
        &[
            &[("self_edit_docs", json!({"path": "plan.md", "content": "First the sums."}))],
            &[
                ("self_edit_system_prompt", json!({"new_prompt": "You add up, slowly."})),
                ("remember", json!({"text": "Three is one and two."})),
            ],
        ],
        &[("tool:self_edit:system_prompt", false), ("tool:remember:Three is one and two.", false)],
    );
    fine(&results);
    // The request that ends this very turn has them.
    let asked = story.request().text;
    for known in ["You add up, slowly.", "First the sums.", "Three is one and two."] {
        assert!(asked.contains(known), "the model is not shown {known}");
    }
}

fn it_hears_that_its_build_ended(story: &Story) {
    let build = "until test -e go; do sleep 0.01; done; echo built";
    let results = story
        .turn(&[&[("bash", json!({"command": build, "background": true}))]], &[(&format!("tool:bash:{build}"), false)]);
    assert!(texts(&results)[0].starts_with("task t1 "), "{:?}", texts(&results));
    let listed = story
        .client()
        .call::<List>(&ListParams { agent: Some("a".into()), ..Default::default() })
        .expect("tasks.list")
        .tasks;
    assert_eq!(listed.len(), 1);
    fs::write(story.home.agent_dir("a").join("workspace/go"), "").expect("a file in the workspace");
    let heard = |message: &Message| message.content.starts_with("Background task t1 ended with exit status 0");
    wait_until("the end to be heard", DEADLINE, || story.client().messages("a").iter().any(heard).then_some(()));
    fine(&story.turn(&[], &[]));
    let asked = story.request().text;
    assert!(asked.contains("Background task t1 ended with exit status 0") && asked.contains("| built"));
}

fn it_finds_again_and_tells_another(story: &Story) {
    story.answer("b", Response::text(["Heard."]));
    wait_until_complete(&mut story.client());
    let results = story.turn(
        &[&[
            ("search_sessions", json!({"query": "sums"})),
            ("list_agents", json!({})),
            ("send_to_agent", json!({"agent": "b", "message": "The sums are right."})),
        ]],
        &[("tool:send_to_agent:b The sums are right.", false)],
    );
    fine(&results);
    assert!(texts(&results)[0].contains("\n> Which sums are there?"), "{:?}", texts(&results));
    let answered = |message: &Message| message.content == "Heard.";
    wait_until("b to answer", DEADLINE, || {
        story.client().messages_in("b", "from-a").iter().any(answered).then_some(())
    });
    assert!(story.client().messages_in("b", "from-a")[0].content.ends_with("The sums are right."));
}

fn every_decision_is_in_the_log(story: &Story) {
    let key = format!("tool:bash:cat {}", story.server.key_file().display());
    let build = "tool:bash:until test -e go; do sleep 0.01; done; echo built";
    let mut due = vec!["allow tool:create_file:add.sh".to_owned(), "allow tool:create_file:check.sh".into()];
    let asked = |due: &mut Vec<String>, action: &str, answer: &str| {
        due.extend([format!("ask {action}"), format!("{answer} {action}")]);
    };
    asked(&mut due, "tool:bash:chmod +x check.sh", "approved");
    asked(&mut due, "tool:bash:./check.sh", "approved_always");
    let allowed = ["str_replace:add.sh", "bash:./check.sh", "view:add.sh", "bash:./check.sh", "git:commit"];
    due.extend(allowed.map(|action| format!("allow tool:{action}")));
    asked(&mut due, "tool:git:push origin main", "approved");
    due.push("allow tool:git:log".into());
    asked(&mut due, &key, "approved");
    due.extend(["allow tool:self_edit:docs:plan.md".into(), "changed tool:self_edit:docs:plan.md".into()]);
    asked(&mut due, "tool:self_edit:system_prompt", "approved");
    due.push("changed tool:self_edit:system_prompt".into());
    asked(&mut due, "tool:remember:Three is one and two.", "approved");
    asked(&mut due, build, "approved");
    due.extend(["allow tool:search_sessions:sums".into(), "allow tool:list_agents:".into()]);
    asked(&mut due, "tool:send_to_agent:b The sums are right.", "approved");
    let mut found = story.decisions();
    // Calls of one answer that nobody is asked about run beside each other.
    found.sort();
    due.sort();
    assert_eq!(found, due);
    let verified = chorusctl(&story.home, ["--json", "audit", "verify"]).expect_json();
    assert_eq!((&verified["intact"], &verified["broken_at"]), (&json!(true), &Value::Null), "{verified}");
}

fn events_told_it_all(story: &Story) {
    let calls: Vec<String> = story.results().into_iter().filter_map(|result| result.tool_call_id).collect();
    for kind in [EventType::ToolStarted, EventType::ToolFinished] {
        let mut told: Vec<String> = story
            .told(kind, calls.len())
            .iter()
            .map(|event| event.data["id"].as_str().expect("an id").into())
            .collect();
        let mut calls = calls.clone();
        told.sort();
        calls.sort();
        assert_eq!(told, calls, "{}", kind.as_str());
    }
    let asked = story.told(EventType::ApprovalAsked, 8);
    let decided = story.told(EventType::ApprovalDecided, 8);
    assert_eq!((asked.len(), decided.len()), (8, 8));
    assert_eq!(story.told(EventType::TaskStarted, 1)[0].data["id"], "t1");
    assert_eq!(story.told(EventType::TaskFinished, 1)[0].data["exit_code"], 0);
    assert_eq!(story.told(EventType::TurnFinished, 8).len(), 8);
}

fn locked_it_only_reads(story: &Story) {
    chorusctl(&story.home, ["agent", "config", "a", "permissions", "locked"]).expect_success();
    let results = story.turn(&[&[bash("./check.sh"), view("add.sh")]], &[]);
    let refused = results.iter().find(|result| result.is_error).expect("what is refused");
    assert_eq!(refused.content, "tool:bash:./check.sh is not allowed: no rule matches it");
    assert_eq!(story.tools(), ["view", "list_models", "search_sessions"]);
    assert!(story.decisions().contains(&"deny tool:bash:./check.sh".to_owned()));
}
