//! `/memory`, `/session`, `/permissions`, `/file`, and what is answered where no agent reads.

use chorus_proto::methods::memory::{Add, AddParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::{Fault, Interaction};

use super::CommandFixture;

impl CommandFixture {
    fn workspace(&self) -> std::path::PathBuf {
        self.home.agent_dir("scribe").join("workspace")
    }
}

/// The file of an answer that only the caller sees.
#[track_caller]
fn file_of(answered: &Interaction, text: &str) -> (String, String) {
    let answer = answered.response_with(text);
    assert!(answer.ephemeral, "{answer:?}");
    let [file] = answer.files.as_slice() else { panic!("{answer:?}") };
    (file.name.clone(), String::from_utf8(file.bytes.clone()).expect("text"))
}

#[test]
fn memory_is_listed_added_and_removed() {
    let fixture = CommandFixture::new();
    fixture.slash("memory list", &[]).response_with("remembers nothing yet");
    let added = fixture.slash("memory add", &[("text", "Bread takes time.")]).response_with("Added:");
    assert!(!added.ephemeral && added.content.contains("Bread takes time."), "{added:?}");
    let listed = fixture.otto.run_slash_command(&fixture.room, "memory list", &[]).response_with("1 fact");
    assert!(listed.ephemeral && listed.content.contains("Bread takes time."), "{listed:?}");
    let entries = chorusctl(&fixture.home, ["--json", "--agent", "scribe", "memory", "list"]).expect_json();
    let entry = &entries["entries"][0];
    assert_eq!(entry["user"], format!("discord:{}", fixture.mara.id), "{entry}");
    let id = entry["short_id"].as_str().expect("an id").to_owned();
    super::refused(&fixture.otto.run_slash_command(&fixture.room, "memory remove", &[("id", &id)]), "permission");
    fixture.slash("memory remove", &[("id", &id)]).response_with("Moved to the trash:");
    fixture.slash("memory list", &[]).response_with("remembers nothing yet");
}

#[test]
fn a_full_memory_and_a_removed_secret_are_reported() {
    let fixture = CommandFixture::new();
    let mut client = fixture.client();
    for number in 0..100 {
        let params = AddParams {
            agent: Some("scribe".into()),
            text: format!("{number} {}", "bread ".repeat(300)),
            ..AddParams::default()
        };
        client.call::<Add>(&params).expect("memory.add");
    }
    let note = "Note: the model sees ";
    let (_, newest) = file_of(&fixture.slash("memory list", &[]), "100 facts");
    assert!(newest.contains(note) && newest.contains("`/memory remove`"), "{newest}");
    let (_, oldest) = file_of(&fixture.slash("memory list", &[("page", "5")]), "page 5 of 5");
    assert!(oldest.contains("not shown to the model"), "{oldest}");
    let secret = "Use ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789.";
    fixture.slash("memory add", &[("text", secret)]).response_with("Note: 1 secret was removed from it.");
}

#[test]
fn a_session_is_listed_and_exported_as_a_file_without_its_secrets() {
    let fixture = CommandFixture::new();
    fixture.talk("scribe");
    fixture.client().append("scribe", "the key is ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789");
    fixture.slash("context save", &[]).response_with("Saved as");
    fixture.otto.run_slash_command(&fixture.room, "session list", &[]).response_with("1 session");
    fixture.slash("session list", &[]).response_with("1 session");
    let export = |given: &[(&str, &str)]| fixture.slash("session export", given);
    let (name, text) = file_of(&export(&[("session", "latest")]), "message");
    assert!(name.ends_with(".md") && text.contains("the key is"), "{name}: {text}");
    assert!(!text.contains("ghp_AbCd"), "{text}");
    let (name, text) = file_of(&export(&[("session", "1"), ("format", "html")]), "message");
    assert!(name.ends_with(".html") && text.contains("<html"), "{name}");
    let by_otto = fixture.otto.run_slash_command(&fixture.room, "session export", &[("session", "latest")]);
    super::refused(&by_otto, "permission");
    let actions: Vec<String> = fixture.audit().into_iter().map(|row| row.action).collect();
    assert!(actions.contains(&"discord:session.export".to_owned()), "{actions:?}");
}

#[test]
fn a_file_of_the_workspace_is_fetched_if_the_agent_may_view_it() {
    let fixture = CommandFixture::new();
    std::fs::create_dir(fixture.workspace().join("out")).expect("a folder");
    std::fs::write(fixture.workspace().join("out/report.md"), "# Report\n").expect("written");
    std::fs::write(fixture.workspace().join("big.bin"), vec![0_u8; (10 << 20) + 1]).expect("written");
    let file = |path: &str| fixture.otto.run_slash_command(&fixture.room, "file", &[("path", path)]);
    let (name, text) = file_of(&file("./out//report.md"), "out/report.md");
    assert_eq!((&*name, &*text), ("report.md", "# Report\n"));
    let listed = fixture.otto.run_slash_command(&fixture.room, "file", &[]).response_with("Files of **scribe**");
    assert!(listed.content.contains("big.bin") && listed.content.contains("out"), "{listed:?}");
    std::fs::write(fixture.workspace().join("empty.txt"), "").expect("written");
    std::os::unix::fs::symlink("/etc/passwd", fixture.workspace().join("link")).expect("a link");
    for (path, due) in [
        ("big.bin", "Ask the agent to compress or split it."),
        ("none.md", "List the files: `/file`"),
        ("link", "which Chorus does not follow"),
        ("/etc/passwd", "/etc/passwd is outside the workspace. List"),
    ] {
        let answer = super::refused(&file(path), due);
        assert!(answer.files.is_empty(), "{answer:?}");
        assert!(!answer.content.contains(fixture.home.path.to_str().expect("UTF-8")), "{answer:?}");
        assert!(!answer.content.contains("file tools"), "{answer:?}");
    }
    file("big.bin").response_with("larger than 10 MiB");
    file("none.md").response_with("none.md does not exist");
    file("out/").response_with("report.md");
    let empty = file("empty.txt").response_with("`empty.txt` is empty.");
    assert!(empty.files.is_empty(), "{empty:?}");
    file("../agent.json").response_with("outside the workspace");
    file(".git/config").response_with("git's own directory");
    let too_large = Fault::Refuse(413, 40_005, "Request entity too large");
    fixture.discord.inject_fault("PATCH /webhooks/*/*/messages/@original", 1, too_large);
    file("out/report.md").response_with("Discord rejected the file.");
    let profile = r#"{"allow": ["tool:view:public/.*"]}"#;
    chorusctl(&fixture.home, ["agent", "config", "scribe", "permissions", profile]).expect_success();
    file("out/report.md").response_with("may not view out/report.md");
}

#[test]
fn permissions_are_shown_tested_and_taken_back() {
    let fixture = CommandFixture::new();
    let path = fixture.home.agent_dir("scribe").join("agent.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("agent.json")).expect("JSON");
    config["permission_rules"] = serde_json::json!([{
        "kind": "command", "rule": "git log *", "created_at": "2026-01-01T00:00:00Z",
        "created_by": format!("discord:{}", fixture.mara.id),
    }]);
    std::fs::write(&path, config.to_string()).expect("written");
    // A command that reads the agent notices the edit.
    chorusctl(&fixture.home, ["permissions", "rules", "scribe"]).expect_success();
    let otto = |command: &str, given: &[(&str, &str)]| fixture.otto.run_slash_command(&fixture.room, command, given);
    let shown = otto("permissions show", &[]).response_with("`standard`");
    assert!(shown.ephemeral && shown.content.contains("asks: bash\n"), "{shown:?}");
    assert!(shown.content.contains("`git log *`") && shown.content.contains(&format!("<@{}>", fixture.mara.id)));
    otto("permissions check", &[("command", "ls")]).response_with("asks before it runs this");
    super::refused(&otto("permissions remove", &[("number", "1")]), "permission");
    fixture.slash("permissions remove", &[("number", "7")]).response_with("No permanent approval 7");
    fixture.slash("permissions remove", &[("number", "1")]).response_with("Removed: 1\\. `git log *`");
    let rules = chorusctl(&fixture.home, ["--json", "permissions", "rules", "scribe"]).expect_json();
    assert_eq!(rules["rules"], serde_json::json!([]));
    let changed = fixture.audit().into_iter().find(|row| row.action == "agent.config:permission_rules").expect("a row");
    assert_eq!(changed.user, format!("discord:{}", fixture.mara.id));
}

#[test]
fn who_talks_where_no_agent_reads_is_answered_with_what_to_do() {
    let fixture = CommandFixture::new();
    let direct = fixture.discord.direct_channel(&fixture.otto);
    direct.say(&fixture.otto, "hello?");
    direct.wait_for_post("Write in the channel of an agent");
    let mention = format!("<@{}> hello?", fixture.discord.own_user().id);
    fixture.hall.say(&fixture.otto, "not for you");
    let asked = fixture.hall.say(&fixture.otto, &mention);
    let answer = fixture.hall.wait_for_post("No agent reads this channel.");
    assert_eq!(answer.reply_to, Some(asked), "{answer:?}");
    assert!(answer.content.contains(&format!("<#{}>", fixture.room.id)), "{answer:?}");
    // Whoever goes on gets no flood of answers.
    fixture.hall.say(&fixture.otto, &mention);
    fixture.slash("ping", &[]).response_with("is online");
    assert_eq!(fixture.hall.application_posts().len(), 1);
}
