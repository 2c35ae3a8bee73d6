//! What is looked at.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::methods::doctor::Verdict;
use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{self, chorusctl};
use chorus_tests::wait::DEADLINE;
use chorus_tests::{Daemon, wait_until};

use super::{doctor, trouble};
use crate::home;

#[test]
fn a_sound_home_has_nothing_to_complain_of() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "one");
    daemon.client().save("a", "saved");
    let (status, found) = doctor(&home, &[]);
    assert_eq!((status, trouble(&found).len()), (0, 0), "{found:?}");
    assert_eq!(found.rebuilt, None);
    let text = |name: &str| {
        let check = found.checks.iter().find(|check| check.name == name);
        check.unwrap_or_else(|| panic!("no {name}: {found:?}")).text.clone()
    };
    // P7.
    assert!(text("SQLite").starts_with(rusqlite::version()), "{}", text("SQLite"));
    assert_eq!(text("sessions"), "1 session, all files present");
    assert_eq!(text("socket"), home.socket().display().to_string());
    for name in ["live.db", "chorus.db", "agents", "permissions", "free space", "git"] {
        assert!(!text(name).is_empty());
    }
    assert!(text("sandbox").starts_with("commands are isolated by") || text("sandbox").starts_with("none"));
    for name in ["Landlock", "seccomp", "processes"] {
        let check = found.checks.iter().find(|check| check.name == name).expect("a check");
        assert_eq!(check.verdict, Verdict::Info, "{name}");
    }
    let shown = chorusctl(&home, ["doctor"]).expect_success();
    assert!(shown.lines().any(|line| line.starts_with("ok    chorus.db")), "{shown}");
}

#[test]
fn what_is_wrong_with_files_is_named_with_what_to_do() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let name = |description: &str| daemon.client().save("a", description).header.session_id;
    let (gone, changed, kept) = (name("gone"), name("changed"), name("kept"));
    let path = |name: &str| home.sessions_dir("a").join(format!("{name}.json"));
    let session = fs::read_to_string(path(&kept)).expect("the session");
    fs::write(path("2026-01-01_stranger"), &session).expect("a copy");
    fs::set_permissions(path("2026-01-01_stranger"), Permissions::from_mode(0o600)).expect("a mode");
    fs::remove_file(path(&gone)).expect("removed");
    fs::write(path(&changed), "half a sess").expect("overwritten");
    let (status, found) = doctor(&home, &[]);
    assert_eq!(status, 1);
    let said: Vec<_> = found.checks.iter().filter(|check| check.name == "sessions").collect();
    for (verdict, what) in [
        (Verdict::Fail, format!("1 missing: a/{gone}")),
        (Verdict::Warn, "1 not in the index yet: a/2026-01-01_stranger".to_owned()),
        (Verdict::Warn, format!("1 changed since they were indexed: a/{changed}")),
    ] {
        let check = said.iter().find(|check| check.text == what);
        let check = check.unwrap_or_else(|| panic!("no {what}: {said:?}"));
        assert!(check.verdict == verdict && check.hint.is_some(), "{check:?}");
    }
    let shown = chorusctl(&home, ["doctor"]);
    assert_eq!((shown.status, &*shown.stderr), (1, ""), "the list says it all");
    assert!(shown.stdout.contains("FAIL  sessions") && shown.stdout.contains("hint: "), "{}", shown.stdout);
    // Read anew, the file that was overwritten is a corrupt session, and the missing one is forgotten.
    let (status, found) = doctor(&home, &["--rebuild"]);
    assert_eq!((status, found.rebuilt.as_ref().map(|rebuilt| (rebuilt.sessions, rebuilt.corrupt))), (1, Some((3, 1))));
    let bad = trouble(&found);
    assert_eq!(bad["sessions"].text, format!("1 corrupt: a/{changed}"));
    assert_eq!((bad.len(), fs::read_to_string(path(&changed)).expect("left as it is")), (1, "half a sess".to_owned()));
    let names: Vec<_> = daemon.client().history("a").into_iter().map(|session| session.header.session_id).collect();
    assert!(names.contains(&kept) && names.contains(&"2026-01-01_stranger".to_owned()), "{names:?}");
}

#[test]
fn open_doors_agents_without_a_file_and_a_missing_git_are_seen() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().init("b");
    daemon.terminate();
    fs::set_permissions(home.agent_dir("a").join("docs"), Permissions::from_mode(0o755)).expect("a mode");
    let mut command = home.command(home.bins.chorusd);
    command.env("PATH", home.temp_dir());
    let _daemon = Daemon::start_command(&home, command);
    fs::remove_file(home.agent_dir("b").join("agent.json")).expect("removed");
    let (status, found) = doctor(&home, &[]);
    let bad = trouble(&found);
    assert_eq!(status, 1);
    assert_eq!((bad["permissions"].verdict, bad["agents"].verdict), (Verdict::Warn, Verdict::Fail), "{bad:?}");
    assert!(bad["permissions"].text.contains("agents/a/docs") && bad["agents"].text.contains('b'), "{bad:?}");
    assert_eq!(bad["git"].verdict, Verdict::Fail, "{bad:?}");
}

#[test]
fn without_a_daemon_one_is_started_unless_that_is_forbidden() {
    let home = home();
    chorusctl(&home, ["doctor", "--no-autostart"]).expect_failure_with_hint(4);
    assert!(!home.path.exists());
    chorusctl(&home, ["doctor"]).expect_success();
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUSD", "/nowhere").env("CHORUS_HOME", home.temp_dir().join("other")).args(["doctor", "--rebuild"]);
    ctl::run_command(command, b"").expect_failure_with_hint(4);
}

#[test]
fn rules_that_match_any_program_are_listed() {
    let home = home();
    let free = "[permissions.free]\nallow = [\"tool:view:.*\", \"tool:.*\"]\n\
                [permissions.named]\nallow = [\"tool:bash:(cargo|ls)( .*)?\"]\n\
                [permissions.whole]\nallow = [\".*\"]\nbash = \"whole\"\n";
    let daemon = Daemon::start_with(&home, free);
    daemon.client().init("a");
    let rules =
        || doctor(&home, &[]).1.checks.into_iter().find(|check| check.name == "permission rules").expect("a check");
    assert!(rules().text.ends_with("need approval: free allow[1]"), "{:?}", rules());
    let own = r#"{"allow": ["tool:bash:c.*"]}"#;
    chorusctl(&home, ["agent", "config", "a", "permissions", own]).expect_success();
    assert!(rules().text.ends_with("need approval: free allow[1], a allow[0]"), "{:?}", rules());
    assert!(rules().hint.is_some_and(|hint| hint.contains("name the programs")));
}

#[test]
fn conversations_are_counted_and_an_agent_that_has_too_many_is_named() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let check = || doctor(&home, &[]).1.checks.into_iter().find(|check| check.name == "conversations");
    assert!(check().is_none(), "there is only main");
    for name in ["one", "two"] {
        let params = NewParams { agent: Some("a".into()), name: name.into(), ..Default::default() };
        client.call::<New>(&params).expect("a conversation");
    }
    let message = vec![NewMessage::text(Role::User, "hello")];
    let params = AppendParams {
        agent: Some("a".into()),
        conversation: Some("one".into()),
        messages: message,
        ..Default::default()
    };
    client.append("a", "hello");
    client.call::<Append>(&params).expect("an append");
    let told = check().expect("a check");
    assert_eq!((told.verdict, &*told.text), (Verdict::Ok, "2 conversations in addition to main, 1 live"));
    let limit = ConfigParams { name: "a".into(), key: Some("max_conversations".into()), value: Some("2".into()) };
    client.call::<Config>(&limit).expect("agent.config");
    let told = check().expect("a check");
    assert_eq!(told.verdict, Verdict::Warn);
    assert!(told.text.ends_with("; a has as many live ones as it may"), "{}", told.text);
    assert!(told.hint.is_some_and(|hint| hint.contains("max_conversations")));
}

#[test]
fn a_search_that_does_not_work_is_named() {
    let home = home();
    let daemon = Daemon::start(&home);
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../chorusd/crates/embeddings/tests/model");
    chorusctl(&home, ["search".as_ref(), "model".as_ref(), "--from".as_ref(), model.as_os_str()]).expect_success();
    assert!(daemon.terminate().success());
    for model in fs::read_dir(home.path.join("embeddings/models")).expect("models").flatten() {
        fs::remove_file(model.path().join("tokenizer.json")).expect("removed");
    }
    fs::remove_dir_all(home.path.join("index")).expect("removed");
    fs::write(home.path.join("index"), "no directory").expect("a file");
    let _daemon = Daemon::start(&home);
    let found = wait_until("both checks", DEADLINE, || {
        let found = doctor(&home, &[]).1.checks;
        let found: Vec<_> = found.into_iter().filter(|check| check.name.starts_with("search")).collect();
        (found.len() == 2).then_some(found)
    });
    assert_eq!(found.iter().map(|check| check.verdict).collect::<Vec<_>>(), [Verdict::Fail, Verdict::Warn]);
    assert!(found[0].text.starts_with("the search index cannot be used: cannot remove "), "{found:?}");
    assert!(found[1].text.starts_with("model: tokenizer.json: "), "{found:?}");
}
