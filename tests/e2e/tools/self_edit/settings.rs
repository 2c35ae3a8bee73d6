//! Prompt, notes, permissions, model: changed, in force, written down; or refused, and all as before.

use std::fs;

use serde_json::{Value, json};

use super::{Rig, profile};

#[test]
fn the_prompt_is_replaced_and_in_force() {
    let rig = Rig::new("open");
    let before = rig.config("a", "system_prompt");
    rig.done("self_edit_system_prompt", json!({"new_prompt": "You count sheep.\nSlowly."}));
    assert_eq!(rig.config("a", "system_prompt"), "You count sheep.\nSlowly.");
    rig.server.anthropic().queue_text(["One."]);
    rig.send("go on").expect("a turn");
    assert_eq!(rig.prompt()[0], "You count sheep.\nSlowly.");
    let new = json!("You count sheep.\nSlowly.").to_string();
    assert_eq!(rig.changes(), [["tool:self_edit:system_prompt".into(), "owner".into(), before.to_string(), new]]);
    let why = rig.fails("self_edit_system_prompt", json!({"new_prompt": "x".repeat(100_000)}));
    assert!(why.contains("longer than"), "{why}");
    assert_eq!(rig.changes().len(), 1);
}

#[test]
fn notes_are_written_shown_and_removed() {
    let rig = Rig::new("standard");
    rig.done("self_edit_docs", json!({"path": "plan.md", "content": "First the north field."}));
    // The next step of the same turn shows it.
    assert!(rig.prompt().iter().any(|block| block.contains("## plan.md\n\nFirst the north field.")));
    rig.done("self_edit_docs", json!({"path": "fields/north.md", "content": "Wet."}));
    assert!(rig.prompt().iter().any(|block| block.contains("## fields/north.md\n\nWet.")));
    rig.done("self_edit_docs", json!({"path": "plan.md", "content": "Then the south."}));
    rig.done("self_edit_docs", json!({"path": "plan.md", "content": ""}));
    assert!(!rig.prompt().concat().contains("plan.md"));
    let row = |path: &str, old: &str, new: &str| {
        [format!("tool:self_edit:docs:{path}"), "owner".into(), old.to_owned(), new.to_owned()]
    };
    assert_eq!(
        rig.changes(),
        [
            row("plan.md", "NULL", "First the north field."),
            row("fields/north.md", "NULL", "Wet."),
            row("plan.md", "First the north field.", "Then the south."),
            row("plan.md", "Then the south.", "NULL"),
        ]
    );
    rig.fails("self_edit_docs", json!({"path": "plan.md", "content": ""}));
}

#[test]
fn notes_are_not_without_number() {
    let rig = Rig::new("open");
    let docs = rig.home.agent_dir("a").join("docs");
    let before = fs::read_dir(&docs).expect("docs/").count();
    (before..256).for_each(|n| fs::write(docs.join(format!("{n}.md")), "x").expect("a note"));
    let said = rig.fails("self_edit_docs", json!({"path": "more.md", "content": "x"}));
    assert!(said.contains("256 notes") && said.contains("remove a note"), "{said}");
    rig.done("self_edit_docs", json!({"path": "255.md", "content": ""}));
    rig.done("self_edit_docs", json!({"path": "more.md", "content": "x"}));
    fs::File::create(docs.join("254.md")).and_then(|note| note.set_len(4 << 20)).expect("a large note");
    let said = rig.fails("self_edit_docs", json!({"path": "more.md", "content": "longer"}));
    assert!(said.contains("longer than 4 MiB"), "{said}");
    assert_eq!(fs::read_to_string(docs.join("more.md")).expect("the note"), "x");
}

#[test]
fn notes_lie_in_docs_and_nowhere_else() {
    let rig = Rig::new("open");
    let agent = rig.home.agent_dir("a");
    std::os::unix::fs::symlink(&agent, agent.join("docs/up")).expect("a link");
    std::os::unix::fs::symlink(agent.join("agent.json"), agent.join("docs/json")).expect("a link");
    let before = fs::read(agent.join("agent.json")).expect("agent.json");
    let outside = rig.home.temp_dir().join("note.md").display().to_string();
    for path in ["../agent.json", "up/agent.json", "up/x.md", "json", "a/../../x", ".x", "", "a//b", &outside] {
        rig.fails("self_edit_docs", json!({"path": path, "content": "{}"}));
    }
    assert_eq!(fs::read(agent.join("agent.json")).expect("agent.json"), before);
    assert!(!agent.join("x.md").exists() && rig.changes().is_empty());
}

#[test]
fn the_owner_grants_any_permissions_and_they_hold_from_the_next_call_on() {
    let rig = Rig::new("open");
    let own = json!({"allow": ["tool:self_edit:permissions:.*", "tool:list_agents:.*"]});
    rig.done("self_edit_permissions", profile(own.clone()));
    rig.fails("self_edit_docs", json!({"path": "plan.md", "content": "x"}));
    assert!(rig.done("list_agents", json!({})).contains("a (you): anthropic/claude-test, active"));
    rig.done("self_edit_permissions", profile("locked"));
    rig.fails("list_agents", json!({}));
    let row = |to: &str, old: &Value, new: &Value| {
        [format!("tool:self_edit:permissions:{to}"), "owner".into(), old.to_string(), new.to_string()]
    };
    assert_eq!(rig.changes(), [row("custom", &json!("open"), &own), row("locked", &own, &json!("locked"))]);
}

#[test]
fn permissions_that_cannot_be_used_are_refused_with_their_place() {
    let rig = Rig::new("open");
    for (wanted, why) in [
        (json!("opne"), "did you mean `open`?"),
        (json!("custom"), "neither the name of a profile"),
        (json!("{\"allow\": [\".*\"]}"), "neither the name of a profile"),
        (json!({"allow": ["("]}), "`allow[0]` is no regular expression"),
        (json!({"allwo": []}), "`allwo` is no key of a profile"),
        (json!({"examples": [{"action": "tool:view:x", "decision": "allow"}]}), "does not hold"),
        (json!(3), "do not fit"),
    ] {
        let said = rig.fails("self_edit_permissions", profile(wanted));
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(rig.config("a", "permissions"), "open");
    assert!(rig.changes().is_empty());
}

#[test]
fn the_model_must_be_one_that_can_be_called() {
    let tables = "[providers.nokey]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"NO_SUCH_KEY\"\n\
                  [aliases]\nfast = \"local/small\"\n";
    let rig = Rig::with("open", tables, chorus_tests::Daemon::start);
    for (model, why) in [
        ("lokal/small", "lokal"),
        ("nokey/large", "NO_SUCH_KEY is not set"),
        ("", "no name of a model"),
        ("a b", "no name of a model"),
    ] {
        let said = rig.fails("self_edit_model", json!({"model": model}));
        assert!(said.contains(why), "{said}");
    }
    assert!(rig.changes().is_empty());
    // It may hold from the next step on, or from the next turn.
    rig.server.openai().set_fallback(chorus_tests::model_server::Response::text(["Fast."]));
    rig.done("self_edit_model", json!({"model": "fast"}));
    assert_eq!(rig.config("a", "model"), "fast");
    assert_eq!(rig.send("and now?").expect("a turn").reply, "Fast.");
    assert_eq!(rig.changes()[0][0], "tool:self_edit:model:fast");
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let rig = Rig::new("open");
    let docs = || fs::read_dir(rig.home.agent_dir("a").join("docs")).expect("docs/").count();
    let (before, notes) = (fs::read(rig.home.agent_dir("a").join("agent.json")).expect("agent.json"), docs());
    rig.database()
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON audit_log WHEN new.decision = 'changed'
             BEGIN SELECT RAISE(ABORT, 'no room'); END",
        )
        .expect("a trigger");
    rig.fails("self_edit_system_prompt", json!({"new_prompt": "x"}));
    rig.fails("self_edit_permissions", profile("locked"));
    rig.fails("self_edit_model", json!({"model": "local/small"}));
    rig.fails("self_edit_docs", json!({"path": "plan.md", "content": "x"}));
    assert_eq!(fs::read(rig.home.agent_dir("a").join("agent.json")).expect("agent.json"), before);
    assert_eq!(docs(), notes);
    rig.database().execute_batch("DROP TRIGGER full").expect("no trigger");
    rig.done("self_edit_system_prompt", json!({"new_prompt": "x"}));
}

#[test]
fn a_change_that_cannot_be_made_is_told_and_written_down() {
    let rig = Rig::new("open");
    fs::write(rig.home.agent_dir("a").join("agent.json"), "{").expect("agent.json");
    let why = rig.fails("self_edit_system_prompt", json!({"new_prompt": "x"}));
    assert!(why.contains("mend agent.json"), "{why}");
    assert_eq!(fs::read_to_string(rig.home.agent_dir("a").join("agent.json")).expect("agent.json"), "{");
    assert!(rig.changes().is_empty());
}
