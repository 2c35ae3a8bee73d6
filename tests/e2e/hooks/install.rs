//! The entries in the settings.

use std::fs;

use serde_json::{Value, json};

use super::{hooks, user_home};
use crate::home;

#[test]
fn hooks_are_added_once_and_removed_without_a_trace() {
    let home = home();
    let path = user_home(&home).join(".claude/settings.json");
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    for before in [
        "{\n  \"model\": \"opus\"\n}\n",
        "{\n  \"hooks\": {\n    \"PreCompact\": [\n      {\n        \"matcher\": \"auto\",\n        \"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]\n      } // my own\n    ]\n  }\n}\n",
    ] {
        fs::write(&path, before).expect("settings");
        let said = hooks(&home, &["install", "claude-code", "--yes"], "");
        assert!(said.stdout.starts_with("installed in Claude Code") && said.stderr.contains("+ "), "{said:?}");
        let text = fs::read_to_string(&path).expect("the settings");
        assert_eq!(text.matches("hooks run claude-code").count(), 3, "{text}");
        assert_eq!(text.matches("mine").count(), before.matches("mine").count(), "{text}");
        let again = hooks(&home, &["install", "claude-code", "--yes"], "").expect_success();
        assert!(again.starts_with("already installed"), "{again}");
        // Another instance replaces them.
        let mut other = home.command(home.bins.chorusctl);
        other.env("HOME", user_home(&home)).env("CHORUS_CONFIG", "/etc/other.toml");
        other.args(["hooks", "install", "claude-code", "--yes"]);
        assert!(other.output().expect("it runs").status.success());
        let text = fs::read_to_string(&path).expect("the settings");
        let counted =
            ["hooks run claude-code", "CHORUS_CONFIG=/etc/other.toml "].map(|words| text.matches(words).count());
        assert_eq!(counted, [3, 3], "{text}");
        let removed = hooks(&home, &["--json", "uninstall", "claude-code", "--yes"], "").expect_json();
        assert_eq!(removed["changed"], true, "{removed}");
        assert_eq!(fs::read_to_string(&path).expect("the settings"), before);
        let again = hooks(&home, &["uninstall", "claude-code", "--yes"], "").expect_success();
        assert!(again.starts_with("not installed"), "{again}");
    }
}

#[test]
fn settings_that_do_not_exist_are_created_where_the_tool_looks() {
    let home = home();
    let dir = user_home(&home).join("elsewhere");
    let mut install = home.command(home.bins.chorusctl);
    install.env("CLAUDE_CONFIG_DIR", &dir).args(["hooks", "install", "claude-code", "--yes"]);
    assert!(install.output().expect("it runs").status.success());
    let settings = fs::read_to_string(dir.join("settings.json")).expect("the settings");
    let settings: Value = serde_json::from_str(&settings).expect("JSON");
    for event in ["SessionStart", "PreCompact", "SessionEnd"] {
        let hook = &settings["hooks"][event][0]["hooks"][0];
        assert_eq!(hook["type"], "command", "{settings}");
        assert!(hook["command"].as_str().is_some_and(|command| command.contains("CHORUS_HOME=")), "{settings}");
    }
}

#[test]
fn nothing_is_changed_without_consent_or_understanding() {
    let home = home();
    let path = user_home(&home).join(".claude/settings.json");
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    for (before, args, due) in [
        ("{}\n", &["install", "claude-code"][..], "--yes"),
        ("{\"hooks\": []}\n", &["install", "claude-code", "--yes"], "cannot change"),
        ("{\"hooks\": {\"PreCompact\": {}}}\n", &["install", "claude-code", "--yes"], "cannot change"),
        ("{\"a\": \n", &["install", "claude-code", "--yes"], "not valid JSON"),
        ("{\"a\": \n", &["uninstall", "claude-code", "--yes"], "not valid JSON"),
    ] {
        fs::write(&path, before).expect("settings");
        let said = hooks(&home, args, "");
        assert!(said.status != 0 && said.stderr.contains(due), "{before}: {said:?}");
        assert_eq!(fs::read_to_string(&path).expect("the settings"), before);
    }
    let unknown = hooks(&home, &["install", "notepad", "--yes"], "");
    assert_eq!(unknown.status, 2, "{unknown:?}");
    assert_eq!(json!(unknown.stdout), json!(""));
}
