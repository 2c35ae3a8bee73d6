//! The entry in the configuration of coding tools.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use chorus_tests::ctl::{Output, run_command};
use chorus_tests::{Home, InteractiveCommand};
use serde_json::{Value, json};

use crate::home;

/// The user's home of a test.
fn user_home(home: &Home) -> PathBuf {
    let dir = home.temp_dir().join("user");
    fs::create_dir_all(&dir).expect("a directory");
    dir
}

fn run(home: &Home, args: &[&str]) -> Output {
    let mut command = home.command(home.bins.chorusctl);
    command.env("HOME", user_home(home)).args(args);
    run_command(command, b"")
}

/// The tools, each with its file, the place of the entry, and what the file has in it beforehand.
const TOOLS: [(&str, &str, &str, &str); 5] = [
    (
        "claude-code",
        ".claude.json",
        "/mcpServers/chorus",
        "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"}\n  }\n}",
    ),
    ("gemini", ".gemini/settings.json", "/mcpServers/chorus", "{\"security\":{\"auth\":{\"selectedType\":\"oauth\"}}}"),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "/mcp/chorus",
        "{\n\t\"$schema\": \"https://opencode.ai/config.json\",\n\t\"theme\": \"dark\"\n}\n",
    ),
    ("zed", ".config/zed/settings.json", "/context_servers/chorus", "{\n  \"ui_font_size\": 16\n}\n"),
    ("cursor", ".cursor/mcp.json", "/mcpServers/chorus", "{\n}\n"),
];

#[test]
fn an_entry_is_added_once_and_removed_without_a_trace() {
    let home = home();
    for (tool, file, place, before) in TOOLS {
        let path = user_home(&home).join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, before).expect("a configuration");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("permissions");
        let said = run(&home, &["--agent", "docs", "mcp", "install", tool, "--write", "--yes"]);
        assert!(said.stdout.starts_with("installed in "), "{said:?}");
        assert!(said.stderr.contains(file) && said.stderr.contains("+ "), "the change is shown: {}", said.stderr);
        let text = fs::read_to_string(&path).expect("the configuration");
        let entry: Value =
            serde_json::from_str::<Value>(&text).expect("JSON").pointer(place).expect("an entry").clone();
        let words = if tool == "opencode" {
            entry["command"].clone()
        } else {
            json!([[entry["command"].clone()], entry["args"].clone()])
        };
        let words = words.to_string();
        assert!(words.contains("chorusctl") && words.contains(r#""mcp","--write","--agent","docs""#), "{words}");
        let env = if tool == "opencode" { "environment" } else { "env" };
        assert!(entry[env]["CHORUS_HOME"].is_string(), "{entry}");
        assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o640);
        let mut backup = path.clone().into_os_string();
        backup.push(".before-chorus");
        assert_eq!(fs::read_to_string(&backup).expect("a copy"), before);
        let again = run(&home, &["--agent", "docs", "mcp", "install", tool, "--write", "--yes"]).expect_success();
        assert!(again.starts_with("already installed in "), "{again}");
        // Other options replace it.
        run(&home, &["mcp", "install", tool, "--yes"]).expect_success();
        let changed = fs::read_to_string(&path).expect("the configuration");
        assert!(!changed.contains("--write") && changed.matches("chorusctl").count() == 1, "{changed}");
        let json = run(&home, &["mcp", "uninstall", tool, "--yes", "--json"]).expect_json();
        assert_eq!((&json["tool"], &json["changed"]), (&json!(tool), &json!(true)), "{json}");
        let after = fs::read_to_string(&path).expect("the configuration");
        // Only blanks of the outermost object may differ.
        let same =
            |text: &str| text.replacen("{\n  \"security", "{\"security", 1).replace("\n}", "}").replace("{}\n", "{}");
        assert_eq!(same(&after), same(before), "{tool}");
        assert_eq!(fs::read_to_string(&backup).expect("a copy"), before, "the copy is what the user had");
        let said = run(&home, &["mcp", "uninstall", tool, "--yes"]).expect_success();
        assert!(said.starts_with("not installed in "), "{said}");
    }
}

#[test]
fn the_configuration_of_codex_keeps_its_comments() {
    let home = home();
    let path = user_home(&home).join(".codex/config.toml");
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let before = "# mine\nmodel = \"gpt\" # best\n\n[mcp_servers.other]\ncommand = \"x\"\n";
    fs::write(&path, before).expect("a configuration");
    run(&home, &["mcp", "install", "codex", "--yes"]).expect_success();
    let text = fs::read_to_string(&path).expect("the configuration");
    assert!(text.starts_with(before) && text.contains("\n[mcp_servers.chorus]\ncommand = \""), "{text}");
    assert!(run(&home, &["mcp", "install", "codex", "--yes"]).expect_success().starts_with("already installed"));
    run(&home, &["mcp", "uninstall", "codex", "--yes"]).expect_success();
    assert_eq!(fs::read_to_string(&path).expect("the configuration"), before);
}

#[test]
fn a_configuration_that_does_not_exist_is_created() {
    let home = home();
    for (tool, file, place, _) in TOOLS {
        run(&home, &["mcp", "install", tool, "--yes"]).expect_success();
        let text = fs::read_to_string(user_home(&home).join(file)).expect("the configuration");
        let root: Value = serde_json::from_str(&text).expect("JSON");
        assert!(root.pointer(place).is_some() && text.ends_with("}\n"), "{text}");
    }
    run(&home, &["mcp", "install", "codex", "--yes"]).expect_success();
    assert!(user_home(&home).join(".codex/config.toml").exists());
}

#[test]
fn comments_and_links_stay() {
    let home = home();
    let folder = user_home(&home).join(".config/zed");
    fs::create_dir_all(&folder).expect("a folder");
    let target = home.temp_dir().join("dotfiles.json");
    let before = "// Zed\n{\n  // fonts\n  \"ui_font_size\": 16, // large\n  \"vim\": true,\n}\n";
    fs::write(&target, before).expect("a configuration");
    symlink(&target, folder.join("settings.json")).expect("a link");
    run(&home, &["mcp", "install", "zed", "--yes"]).expect_success();
    let text = fs::read_to_string(&target).expect("the configuration");
    assert!(
        text.starts_with(
            "// Zed\n{\n  // fonts\n  \"ui_font_size\": 16, // large\n  \"vim\": true,\n  \"context_servers\": {"
        ),
        "{text}"
    );
    assert!(folder.join("settings.json").is_symlink());
    run(&home, &["mcp", "uninstall", "zed", "--yes"]).expect_success();
    assert_eq!(fs::read_to_string(&target).expect("the configuration"), before);
}

#[test]
fn nothing_is_changed_without_a_yes_or_if_the_file_is_not_understood() {
    let home = home();
    let path = user_home(&home).join(".claude.json");
    let refused = run(&home, &["mcp", "install", "claude-code"]);
    refused.expect_failure_with_hint(6);
    assert!(!path.exists());
    fs::write(&path, "{\"mcpServers\": ").expect("a broken configuration");
    let refused = run(&home, &["mcp", "install", "claude-code", "--yes"]);
    assert!(refused.expect_failure_with_hint(1).contains("is not valid JSON; nothing was changed"), "{refused:?}");
    fs::write(&path, "{\"mcpServers\": [1]}").expect("a strange configuration");
    let refused = run(&home, &["mcp", "install", "claude-code", "--yes"]);
    assert!(refused.status == 1 && refused.stderr.contains("by hand"), "{refused:?}");
    assert!(refused.stdout.contains("\"chorus\": {"), "the entry is printed: {}", refused.stdout);
    assert_eq!(fs::read_to_string(&path).expect("the configuration"), "{\"mcpServers\": [1]}");
    assert!(!user_home(&home).join(".claude.json.before-chorus").exists());
}

#[test]
fn on_a_terminal_it_asks_and_the_server_does_not_start_there() {
    let home = home();
    let mut command = home.command(home.bins.chorusctl);
    command.env("HOME", user_home(&home)).args(["mcp", "install", "cursor"]);
    let mut shown = InteractiveCommand::on_terminal(&command);
    shown.stdout.wait_for("[y/N]");
    shown.type_text("y\r");
    shown.stdout.wait_for("installed in Cursor");
    assert!(user_home(&home).join(".cursor/mcp.json").exists());
    let mut command = home.command(home.bins.chorusctl);
    command.arg("mcp");
    let server = InteractiveCommand::on_terminal(&command);
    server.stdout.wait_for("chorusctl mcp install claude-code");
}
