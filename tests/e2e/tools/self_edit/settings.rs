//! Prompt, notes, permissions, model: changed, in force, written down; or refused, and all as before.

use std::fs;

use serde_json::{Value, json};

use super::{
    audited_changes, expect_tool, expect_tool_error, last_prompt, open_catalog, profile, start_fixture,
    start_fixture_with,
};

#[test]
fn the_prompt_is_replaced_and_in_force() {
    let fixture = start_fixture("open");
    let before = fixture.agent_json("a", "system_prompt");
    expect_tool(&fixture, "self_edit_system_prompt", json!({"new_prompt": "You count sheep.\nSlowly."}));
    assert_eq!(fixture.agent_json("a", "system_prompt"), "You count sheep.\nSlowly.");
    fixture.models().anthropic().queue_text(["One."]);
    fixture.send("a", "go on").expect("a turn");
    assert_eq!(last_prompt(&fixture)[0], "You count sheep.\nSlowly.");
    let new = json!("You count sheep.\nSlowly.").to_string();
    assert_eq!(
        audited_changes(&fixture),
        [["tool:self_edit:system_prompt".into(), "owner".into(), before.to_string(), new]]
    );
    let why = expect_tool_error(&fixture, "self_edit_system_prompt", json!({"new_prompt": "x".repeat(100_000)}));
    assert!(why.contains("longer than"), "{why}");
    assert_eq!(audited_changes(&fixture).len(), 1);
}

#[test]
fn notes_are_written_shown_and_removed() {
    let fixture = start_fixture("standard");
    expect_tool(&fixture, "self_edit_docs", json!({"path": "plan.md", "content": "First the north field."}));
    // The next step of the same turn shows it.
    assert!(last_prompt(&fixture).iter().any(|block| block.contains("## plan.md\n\nFirst the north field.")));
    expect_tool(&fixture, "self_edit_docs", json!({"path": "fields/north.md", "content": "Wet."}));
    assert!(last_prompt(&fixture).iter().any(|block| block.contains("## fields/north.md\n\nWet.")));
    expect_tool(&fixture, "self_edit_docs", json!({"path": "plan.md", "content": "Then the south."}));
    expect_tool(&fixture, "self_edit_docs", json!({"path": "plan.md", "content": ""}));
    assert!(!last_prompt(&fixture).concat().contains("plan.md"));
    let row = |path: &str, old: &str, new: &str| {
        [format!("tool:self_edit:docs:{path}"), "owner".into(), old.to_owned(), new.to_owned()]
    };
    assert_eq!(
        audited_changes(&fixture),
        [
            row("plan.md", "NULL", "First the north field."),
            row("fields/north.md", "NULL", "Wet."),
            row("plan.md", "First the north field.", "Then the south."),
            row("plan.md", "Then the south.", "NULL"),
        ]
    );
    expect_tool_error(&fixture, "self_edit_docs", json!({"path": "plan.md", "content": ""}));
}

#[test]
fn notes_are_not_without_number() {
    let fixture = start_fixture("open");
    let docs = fixture.home.agent_dir("a").join("docs");
    let before = fs::read_dir(&docs).expect("docs/").count();
    (before..256).for_each(|n| fs::write(docs.join(format!("{n}.md")), "x").expect("a note"));
    let said = expect_tool_error(&fixture, "self_edit_docs", json!({"path": "more.md", "content": "x"}));
    assert!(said.contains("256 files or folders") && said.contains("remove a file"), "{said}");
    expect_tool(&fixture, "self_edit_docs", json!({"path": "255.md", "content": ""}));
    expect_tool(&fixture, "self_edit_docs", json!({"path": "more.md", "content": "x"}));
    fs::File::create(docs.join("254.md")).and_then(|note| note.set_len(4 << 20)).expect("a large note");
    let said = expect_tool_error(&fixture, "self_edit_docs", json!({"path": "more.md", "content": "longer"}));
    assert!(said.contains("exceed 4 MiB"), "{said}");
    assert_eq!(fs::read_to_string(docs.join("more.md")).expect("the note"), "x");
}

#[test]
fn notes_lie_in_docs_and_nowhere_else() {
    let fixture = start_fixture("open");
    let agent = fixture.home.agent_dir("a");
    std::os::unix::fs::symlink(&agent, agent.join("docs/up")).expect("a link");
    std::os::unix::fs::symlink(agent.join("agent.json"), agent.join("docs/json")).expect("a link");
    let before = fs::read(agent.join("agent.json")).expect("agent.json");
    let outside = fixture.home.temp_dir().join("note.md").display().to_string();
    for path in ["../agent.json", "up/agent.json", "up/x.md", "json", "a/../../x", ".x", "", "a//b", &outside] {
        expect_tool_error(&fixture, "self_edit_docs", json!({"path": path, "content": "{}"}));
    }
    assert_eq!(fs::read(agent.join("agent.json")).expect("agent.json"), before);
    assert!(!agent.join("x.md").exists() && audited_changes(&fixture).is_empty());
}

#[test]
fn the_owner_grants_any_permissions_and_they_hold_from_the_next_call_on() {
    let fixture = start_fixture("open");
    let own = json!({"allow": ["tool:self_edit:permissions:.*", "tool:list_agents:.*"]});
    expect_tool(&fixture, "self_edit_permissions", profile(own.clone()));
    expect_tool_error(&fixture, "self_edit_docs", json!({"path": "plan.md", "content": "x"}));
    assert!(expect_tool(&fixture, "list_agents", json!({})).contains("a (you): anthropic/claude-test, active"));
    expect_tool(&fixture, "self_edit_permissions", profile("locked"));
    expect_tool_error(&fixture, "list_agents", json!({}));
    let row = |to: &str, old: &Value, new: &Value| {
        [format!("tool:self_edit:permissions:{to}"), "owner".into(), old.to_string(), new.to_string()]
    };
    assert_eq!(audited_changes(&fixture), [row("custom", &json!("open"), &own), row("locked", &own, &json!("locked"))]);
}

#[test]
fn permissions_that_cannot_be_used_are_refused_with_their_place() {
    let fixture = start_fixture("open");
    for (wanted, why) in [
        (json!("opne"), "did you mean `open`?"),
        (json!("custom"), "must be a profile name"),
        (json!("{\"allow\": [\".*\"]}"), "must be a profile name"),
        (json!({"allow": ["("]}), "`allow[0]` is not a valid regular expression"),
        (json!({"allwo": []}), "`allwo` is not a key of a profile"),
        (json!({"examples": [{"action": "tool:view:x", "decision": "allow"}]}), "failed: "),
        (json!(3), "invalid parameters"),
    ] {
        let said = expect_tool_error(&fixture, "self_edit_permissions", profile(wanted));
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(fixture.agent_json("a", "permissions"), "open");
    assert!(audited_changes(&fixture).is_empty());
}

#[test]
fn the_model_must_be_one_that_can_be_called() {
    let tables = "[providers.nokey]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"NO_SUCH_KEY\"\n\
                  [aliases]\nfast = \"local/small\"\n";
    let fixture = start_fixture_with("open", tables);
    for (model, why) in [
        ("lokal/small", "lokal"),
        ("nokey/large", "NO_SUCH_KEY is not set"),
        ("", "not a valid model name"),
        ("a b", "not a valid model name"),
    ] {
        let said = expect_tool_error(&fixture, "self_edit_model", json!({"model": model}));
        assert!(said.contains(why), "{said}");
    }
    assert!(audited_changes(&fixture).is_empty());
    // It may hold from the next step on, or from the next turn.
    fixture.models().openai().set_fallback(chorus_tests::model_server::Response::text(["Fast."]));
    expect_tool(&fixture, "self_edit_model", json!({"model": "fast"}));
    assert_eq!(fixture.agent_json("a", "model"), "fast");
    assert_eq!(fixture.send("a", "and now?").expect("a turn").reply, "Fast.");
    assert_eq!(audited_changes(&fixture)[0][0], "tool:self_edit:model:fast");
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let fixture = start_fixture("open");
    let docs = || fs::read_dir(fixture.home.agent_dir("a").join("docs")).expect("docs/").count();
    let (before, notes) = (fs::read(fixture.home.agent_dir("a").join("agent.json")).expect("agent.json"), docs());
    open_catalog(&fixture)
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON audit_log WHEN new.decision = 'changed'
             BEGIN SELECT RAISE(ABORT, 'no room'); END",
        )
        .expect("a trigger");
    expect_tool_error(&fixture, "self_edit_system_prompt", json!({"new_prompt": "x"}));
    expect_tool_error(&fixture, "self_edit_permissions", profile("locked"));
    expect_tool_error(&fixture, "self_edit_model", json!({"model": "local/small"}));
    expect_tool_error(&fixture, "self_edit_docs", json!({"path": "plan.md", "content": "x"}));
    assert_eq!(fs::read(fixture.home.agent_dir("a").join("agent.json")).expect("agent.json"), before);
    assert_eq!(docs(), notes);
    open_catalog(&fixture).execute_batch("DROP TRIGGER full").expect("no trigger");
    expect_tool(&fixture, "self_edit_system_prompt", json!({"new_prompt": "x"}));
}

#[test]
fn a_change_that_cannot_be_made_is_told_and_written_down() {
    let fixture = start_fixture("open");
    fs::write(fixture.home.agent_dir("a").join("agent.json"), "{").expect("agent.json");
    let why = expect_tool_error(&fixture, "self_edit_system_prompt", json!({"new_prompt": "x"}));
    assert!(why.contains("repair agent.json"), "{why}");
    assert_eq!(fs::read_to_string(fixture.home.agent_dir("a").join("agent.json")).expect("agent.json"), "{");
    assert!(audited_changes(&fixture).is_empty());
}
