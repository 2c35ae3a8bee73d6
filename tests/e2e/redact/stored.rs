//! Secrets that were stored without redaction: `doctor --secrets` finds them, and `session scrub` removes them.

use std::fs;
use std::path::Path;

use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::methods::doctor::{SecretPlaceKind, Secrets, SecretsParams};
use chorus_proto::methods::session::{Get, GetParams, Scrub, ScrubParams};
use chorus_proto::{Client, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::json;

use crate::home;

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const AWS: &str = "AKIAQYLPMN5HFIQR7XYA";

/// A session of `a` with secrets in two messages and in its title, and a live context without.
fn with_session(daemon: &Daemon) -> (Client, String) {
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "deploy it, please");
    client.append("a", &format!("the token is {TOKEN} and the key {AWS}"));
    client.append("a", &format!("again {TOKEN}, as \"quoted\\{TOKEN}\""));
    let session = client.save("a", &format!("Deploy with {TOKEN}")).header.session_id;
    client.call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false }).expect("cleared");
    client.append("a", "something else");
    (client, session)
}

/// Files below a directory that contain one of the secrets.
fn holders(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holders(&path));
        } else if fs::read(&path).is_ok_and(|bytes| {
            let has =
                |secret: &str| bytes.windows(secret.len()).any(|part| part.eq_ignore_ascii_case(secret.as_bytes()));
            has(TOKEN) || has(AWS)
        }) {
            found.push(path.to_string_lossy().into_owned());
        }
    }
    found
}

fn forgotten(home: &Home) {
    let mut left = Vec::new();
    wait_until("the secrets to be nowhere", DEADLINE, || {
        left = holders(&home.path);
        left.is_empty().then_some(())
    });
}

fn scrub_params(session: &str) -> ScrubParams {
    ScrubParams { agent: Some("a".into()), session: session.into(), ..ScrubParams::default() }
}

#[test]
fn a_scrubbed_session_keeps_everything_but_its_secrets_which_are_nowhere() {
    let home = home();
    let daemon = Daemon::start(&home);
    let (mut client, session) = with_session(&daemon);
    let before = client.history("a").into_iter().find(|one| one.header.session_id == session).expect("it");
    let read = |client: &mut Client, session: &str| -> Vec<(Role, String)> {
        let params = GetParams { agent: Some("a".into()), session: session.into(), ..GetParams::default() };
        let messages = client.call::<Get>(&params).expect("the session").messages;
        messages.into_iter().map(|message| (message.role, message.content)).collect()
    };
    let texts = read(&mut client, &session);
    chorusctl(&home, ["session", "scrub", &session]).expect_failure_with_hint(6);
    let named = chorusctl(&home, ["session", "scrub", &session, "--dry-run"]).expect_success();
    assert!(named.contains("has 5 secrets in 2 messages") && named.contains("github-token"), "{named}");
    assert!(!named.contains(TOKEN) && !named.contains(AWS), "{named}");
    assert_eq!(read(&mut client, &session), texts, "a dry run changes nothing");

    let said = chorusctl(&home, ["session", "scrub", &session, "--yes"]);
    assert!(said.stderr.contains("hint: replace the secrets themselves"), "{}", said.stderr);
    assert!(said.expect_success().contains("which had 5 secrets in 2 messages"));
    let after = client.history("a").remove(0);
    let (old, new) = (&before.header, &after.header);
    assert_ne!(old.id, new.id);
    assert_eq!(
        (old.saved_at, old.started_at, old.message_count, &old.trigger, old.parent_id, &old.tags),
        (new.saved_at, new.started_at, new.message_count, &new.trigger, new.parent_id, &new.tags)
    );
    let title = new.description.as_deref().expect("a title");
    assert!(title.starts_with("Deploy with [redacted:github-token:"), "{title}");
    let clean = read(&mut client, &new.id.to_string());
    assert_eq!(clean[0], texts[0]);
    assert!(clean[1].1.starts_with("the token is [redacted:github-token:"), "{clean:?}");
    assert!(clean[1].1.contains(" and the key [redacted:aws-access-key:"), "{clean:?}");
    assert_eq!(client.message_texts("a"), ["something else"]);
    assert_eq!(client.history("a").len(), 1);
    forgotten(&home);
    // Nothing is left to do.
    let text = chorusctl(&home, ["session", "scrub", &new.id.to_string(), "--yes"]).expect_success();
    assert!(text.contains("has no secrets; it is unchanged"), "{text}");
    let text = chorusctl(&home, ["doctor", "--secrets"]).expect_success();
    assert!(text.starts_with("no secrets in "), "{text}");
    let hits = chorusctl(&home, ["--agent", "a", "search", "deploy", "--wait", "--json"]).expect_json();
    assert!(hits["hits"].as_array().is_some_and(|hits| !hits.is_empty()), "{hits}");
    chorusctl(&home, ["restore", &new.id.to_string()]).expect_success();
}

#[test]
fn every_place_that_has_a_secret_is_named_and_no_secret_is_shown() {
    let home = home();
    let daemon = Daemon::start(&home);
    let (mut client, session) = with_session(&daemon);
    client.append("a", &format!("live {AWS}"));
    chorusctl(&home, ["--agent", "a", "memory", "add", &format!("the key is {AWS}")]).expect_success();
    let arguments = ["--agent", "a", "schedule", "add", "x", "--every", "4h", &*format!("use {AWS}")];
    chorusctl(&home, arguments).expect_success();
    let forgotten = chorusctl(&home, ["--agent", "a", "memory", "add", &format!("old {AWS}"), "--json"]).expect_json();
    let memory = forgotten["entry"]["id"].as_str().expect("its id");
    chorusctl(&home, ["--agent", "a", "memory", "remove", memory]).expect_success();
    fs::write(home.agent_dir("a").join("docs/DOC_hosts.md"), format!("host\n\ntoken: {TOKEN}\n")).expect("a note");
    fs::write(home.agent_dir("a").join("workspace/.env"), format!("TOKEN={TOKEN}\n")).expect("a file of the workspace");
    client.init("b");
    client.append("b", &format!("deleted {TOKEN}"));
    let other = client.save("b", "of b").header.session_id;
    client.call::<Clear>(&ClearParams { conversation: None, agent: Some("b".into()), save: false }).expect("cleared");
    chorusctl(&home, ["--agent", "b", "rm", &other]).expect_success();
    let found = client.call::<Secrets>(&SecretsParams::default()).expect("doctor.secrets");
    let places: Vec<_> = found.places.iter().map(|place| (place.kind, place.messages.clone())).collect();
    assert_eq!(
        places,
        [
            (SecretPlaceKind::Session, vec![2, 3]),
            (SecretPlaceKind::Conversation, vec![2]),
            (SecretPlaceKind::Memory, vec![]),
            (SecretPlaceKind::Schedule, vec![]),
            (SecretPlaceKind::Trash, vec![]),
            (SecretPlaceKind::Trash, vec![]),
            (SecretPlaceKind::File, vec![]),
        ],
        "{found:?}"
    );
    assert_eq!((found.total, found.unread.len()), (7, 0));
    let id = client.history("a").into_iter().find(|one| one.header.session_id == session).expect("it").header.id;
    assert_eq!(found.places[0].name, id.to_string(), "the name is made of the title, which has a secret");
    assert!(found.places[6].name.ends_with("docs/DOC_hosts.md"), "{:?}", found.places[6]);
    let token = found.places[0].secrets.iter().find(|secret| secret.kind == "github-token").expect("the token");
    assert_eq!(token.count, 4, "{found:?}");
    assert_eq!(found.places[4].secrets[0].fingerprint, token.fingerprint, "the same secret");
    let said = chorusctl(&home, ["doctor", "--secrets"]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    let shown = format!("{}{}", said.stdout, said.stderr);
    assert!(
        shown.contains("7 of ")
            && shown.contains("context clear --save")
            && shown.contains("chorusctl --agent a session scrub "),
        "{shown}"
    );
    let part = &TOKEN[4..20].to_lowercase();
    assert!(!shown.contains(TOKEN) && !shown.contains(AWS) && !shown.contains(part), "{shown}");
    // Of one agent.
    let one = SecretsParams { agent: Some("b".into()), limit: None };
    let found = client.call::<Secrets>(&one).expect("doctor.secrets");
    assert_eq!(found.places.iter().map(|place| place.kind).collect::<Vec<_>>(), [SecretPlaceKind::Trash]);
}

#[test]
fn an_imported_conversation_is_continued_by_its_copy() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let file = home.temp_dir().join("talk.jsonl");
    let line = |number: usize, text: &str| {
        json!({
            "type": "user", "uuid": format!("{number}"), "sessionId": "talk", "timestamp": "2026-03-02T15:10:04Z",
            "message": {"role": "user", "content": text},
        })
    };
    let (first, second) = (line(1, &format!("my token is {TOKEN}")), line(2, "what next?"));
    fs::write(&file, format!("{first}\n{second}\n")).expect("a transcript");
    let path = file.to_string_lossy().into_owned();
    chorusctl(&home, ["--agent", "a", "import", &path]).expect_success();
    let original = client.history("a").remove(0).header;
    let scrubbed = client.call::<Scrub>(&scrub_params(&original.id.to_string())).expect("scrubbed");
    let copy = scrubbed.scrubbed.expect("a copy").header;
    assert_eq!(copy.source.as_ref().map(|of| (of.redacted, &*of.conversation)), Some((true, "talk")));
    assert!(!copy.session_id.contains("16c7"), "{}", copy.session_id);
    // The transcript still has it, and has grown.
    fs::write(&file, format!("{first}\n{second}\n{}\n", line(3, &format!("and now {AWS}")))).expect("a transcript");
    let text = chorusctl(&home, ["--agent", "a", "import", &path]).expect_success();
    assert!(text.contains("1 new"), "{text}");
    let history = client.history("a");
    assert_eq!((history.len(), history[0].header.id, history[0].header.message_count), (1, copy.id, 3));
    fs::remove_file(&file).expect("the transcript");
    forgotten(&home);
}

#[test]
fn a_scrub_that_is_killed_is_continued_and_leaves_one_session() {
    for round in 0..8 {
        let home = home();
        let mut daemon = Daemon::start(&home);
        let (mut client, session) = with_session(&daemon);
        let id = client.history("a").into_iter().find(|one| one.header.session_id == session).expect("it").header.id;
        drop(client);
        let mut asker = daemon.client();
        let asked = std::thread::spawn(move || asker.call::<Scrub>(&scrub_params(&id.to_string())).is_ok());
        let (sessions, trash) = (home.sessions_dir("a"), home.path.join("trash"));
        let original = sessions.join(format!("{session}.json"));
        let count = |dir: &Path| fs::read_dir(dir).map_or(0, Iterator::count);
        wait_until("a step of the scrub", DEADLINE, || {
            let is_there = match round % 4 {
                0 => true,
                1 => count(&sessions) > 1,
                2 => !original.exists(),
                _ => !original.exists() && count(&trash) == 0,
            };
            (is_there || asked.is_finished()).then_some(())
        });
        daemon.kill9();
        let _ = asked.join();
        daemon = Daemon::start(&home);
        let mut client = daemon.client();
        let rest = client.history("a");
        assert!(!rest.is_empty(), "round {round}: nothing is lost");
        let mut outcomes = Vec::new();
        for session in rest {
            // The first one may delete the second.
            let done = client.call::<Scrub>(&scrub_params(&session.header.id.to_string()));
            outcomes.push((session.header.id, session.header.session_id, done.map(|done| done.scrubbed.is_some())));
        }
        let history: Vec<_> =
            client.history("a").into_iter().map(|one| (one.header.id, one.header.session_id)).collect();
        assert_eq!(history.len(), 1, "round {round}: {id} {outcomes:?} {history:?}");
        assert_ne!(history[0].0, id, "round {round}");
        // If the row was deleted already, the same command deletes what is left.
        let _ = client.call::<Scrub>(&scrub_params(&id.to_string()));
        let found = client.call::<Secrets>(&SecretsParams::default()).expect("doctor.secrets");
        assert!(found.places.is_empty(), "round {round}: {found:?}");
    }
}

#[test]
fn what_the_copy_of_an_interrupted_scrub_got_since_is_kept() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let file = home.temp_dir().join("talk.jsonl");
    let path = file.to_string_lossy().into_owned();
    let mut lines = String::new();
    let mut import = |texts: &[&str]| {
        for text in texts {
            let line = json!({
                "type": "user", "uuid": text, "sessionId": "talk", "timestamp": "2026-03-02T15:10:04Z",
                "message": {"role": "user", "content": text},
            });
            lines.push_str(&format!("{line}\n"));
        }
        fs::write(&file, &lines).expect("a transcript");
        chorusctl(&home, ["--agent", "a", "import", &path]).expect_success();
    };
    import(&[&format!("my token is {TOKEN}"), "two"]);
    let original = client.history("a").remove(0).header.id.to_string();
    // The copy is written, but the original cannot be deleted.
    let trash = home.path.join("trash");
    let _ = fs::remove_dir_all(&trash);
    fs::write(&trash, "").expect("a file in the place of the directory");
    client.call::<Scrub>(&scrub_params(&original)).expect_err("no trash");
    fs::remove_file(&trash).expect("the file");
    assert_eq!(client.history("a").len(), 2);
    import(&["three"]);
    let scrubbed = client.call::<Scrub>(&scrub_params(&original)).expect("scrubbed").scrubbed.expect("a copy");
    let history = client.history("a");
    assert_eq!((history.len(), history[0].header.id), (1, scrubbed.header.id));
    assert_eq!(history[0].header.message_count, 3, "what came since is kept");
    import(&["four"]);
    assert_eq!(client.history("a")[0].header.message_count, 4);
    let found = client.call::<Secrets>(&SecretsParams::default()).expect("doctor.secrets");
    assert!(found.places.is_empty(), "{found:?}");
}

#[test]
fn an_agent_may_have_the_name_of_a_directory_that_is_left_out() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("cache");
    fs::write(home.agent_dir("cache").join("docs/DOC_x.md"), format!("{TOKEN}\n")).expect("a note");
    let found = client.call::<Secrets>(&SecretsParams::default()).expect("doctor.secrets");
    assert_eq!(found.places.len(), 1, "{found:?}");
}
