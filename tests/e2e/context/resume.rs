//! A fresh context goes on from a session's summary.

use std::fs;
use std::path::Path;

use chorus_proto::methods::context::{Pin, PinParams, Show, ShowParams};
use chorus_proto::methods::continuation::{Resume, ResumeParams, ResumeResult};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::{Client, ErrorKind, Role, Trigger, WorkingSet};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

pub fn resume(client: &mut Client, agent: &str, session: &str) -> ResumeResult {
    let params =
        ResumeParams { as_conversation: None, conversation: None, agent: Some(agent.into()), session: session.into() };
    client.call::<Resume>(&params).expect("context.resume")
}

pub fn working_set(client: &mut Client, agent: &str) -> WorkingSet {
    let params = ShowParams { agent: Some(agent.into()), limit: Some(0), ..Default::default() };
    client.call::<Show>(&params).expect("context.show").working_set
}

pub fn pin(client: &mut Client, agent: &str, fact: &str) {
    client
        .call::<Pin>(&PinParams { conversation: None, agent: Some(agent.into()), fact: fact.into() })
        .expect("context.pin");
}

/// Sentences as Chorus writes them.
fn sentences(text: &str) -> usize {
    text.split(". ").count()
}

#[test]
fn it_knows_the_session_by_its_summary_and_working_set_and_outlives_a_crash() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Why does the nightly import drop rows? Look at import/load.py.");
    client.append("a", "We decided to keep rows without a country. The back-fill still needs a test.");
    pin(&mut client, "a", "production runs\tPostgreSQL 16");
    let saved = client.save("a", "the nightly import");
    client.append("a", "not saved yet");

    let resumed = resume(&mut client, "a", "latest");
    assert_eq!(resumed.session.header.id, saved.header.id);
    let first = resumed.saved_first.expect("what was unsaved is saved");
    assert_eq!((first.header.trigger, first.header.message_count), (Trigger::Resume, 3));
    assert!(resumed.generated && resumed.warnings.is_empty(), "{:?}", resumed.warnings);
    assert!((2..=6).contains(&sentences(&resumed.acknowledgement)), "{}", resumed.acknowledgement);
    let look = |client: &mut Client| {
        let shown = client.messages("a");
        assert_eq!(shown.len(), 1);
        assert!(shown[0].generated && shown[0].role == Role::Assistant && shown[0].content == resumed.acknowledgement);
        let set = working_set(client, "a");
        let background = set.background.clone().expect("a background");
        assert!(background.starts_with("Derived from session") && background.contains(&saved.header.session_id));
        for known in ["keep rows without a country", "still needs a test", "import/load.py"] {
            assert!(background.contains(known), "{known}: {background}");
        }
        assert!(background.contains(saved.header.summary.as_deref().expect("a summary")), "{background}");
        assert_eq!(set.pinned_facts[0].text, "production runs\tPostgreSQL 16");
        let context = client.agent_status("a").context.expect("a context");
        assert_eq!((context.parent_id, context.messages), (Some(saved.header.id), 1));
        assert!(context.idle_deadline_at.is_some());
    };
    look(&mut client);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    look(&mut client);
    client.append("a", "and on");
    let next = client.save("a", "the next link");
    assert_eq!((next.header.parent_id, next.header.query_count), (Some(saved.header.id), 1));
}

#[test]
fn the_session_itself_is_taken_over_and_those_before_it_are_a_line_each() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Plan the wedding of Odile in Quimper.");
    client.save("a", "odile");
    resume(&mut client, "a", "latest");
    assert!(working_set(&mut client, "a").background.expect("a background").contains("Odile"));
    client.append("a", "Now translate the tractor manual into Breton.");
    client.save("a", "tractor");
    resume(&mut client, "a", "latest");
    let background = working_set(&mut client, "a").background.expect("a background");
    let lines: Vec<_> = background.lines().collect();
    assert!(lines[1].contains("tractor") && !lines[1].contains("Odile"), "{background}");
    assert!(lines[2].starts_with("Before that: session ") && lines[2].ends_with("Odile in Quimper."), "{background}");
}

#[test]
fn what_is_amiss_is_told_and_what_can_be_done_is_done() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    ["a", "b"].into_iter().for_each(|agent| client.init(agent));
    client.append("a", "Count the sheep of the north field.");
    let first = client.save("a", "sheep");
    // Another agent's.
    let other = resume(&mut client, "b", &first.header.session_id);
    assert!(other.warnings[0].contains("belongs to agent a"), "{:?}", other.warnings);
    assert!(working_set(&mut client, "b").background.expect("a background").contains("sheep"));
    // The session before it is gone.
    resume(&mut client, "a", "latest");
    client.append("a", "Now the goats of the south field.");
    let second = client.save("a", "goats");
    let delete = DeleteParams { agent: Some("a".into()), session: first.header.session_id, ..Default::default() };
    client.call::<Delete>(&delete).expect("session.delete");
    let resumed = resume(&mut client, "a", &second.header.session_id);
    assert!(resumed.warnings[0].contains("is missing"), "{:?}", resumed.warnings);
    // Its file is gone, and its summary known.
    fs::remove_file(&second.file_path).expect("its file");
    let resumed = resume(&mut client, "a", &second.header.session_id);
    assert!(resumed.warnings[0].contains("only its summary is available"), "{:?}", resumed.warnings);
    assert!(working_set(&mut client, "a").background.expect("a background").contains("goats"));
    // There is nothing to resume.
    let params = ResumeParams {
        as_conversation: None,
        conversation: None,
        agent: Some("a".into()),
        session: "2026-01-01_nothing".into(),
    };
    assert_eq!(expect_error_kind(client.call::<Resume>(&params)), ErrorKind::SessionNotFound);
}

#[test]
fn a_session_without_a_summary_is_summarised_by_its_own_words() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Paint the boat before the winter comes.");
    let saved = client.save("a", "boat");
    drop(client);
    assert!(daemon.terminate().success());
    let text = fs::read_to_string(&saved.file_path).expect("the file");
    let line = text.lines().find(|line| line.starts_with("  \"summary\": ")).expect("the summary");
    fs::write(&saved.file_path, text.replace(line, "  \"summary\": null,")).expect("a file without");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    chorus_tests::wait_until("the file to be read again", chorus_tests::DEADLINE, || {
        client.history("a").iter().any(|session| session.header.summary.is_none()).then_some(())
    });
    let resumed = resume(&mut client, "a", &saved.header.session_id);
    assert!(resumed.warnings.iter().any(|warning| warning.contains("no summary")), "{:?}", resumed.warnings);
    assert!(working_set(&mut client, "a").background.expect("a background").contains("Paint the boat"));
}

#[test]
fn the_command_line_resumes_sessions_and_files() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Count the sheep of the north field.");
    let saved = client.save("a", "sheep");
    let said = chorusctl(&home, ["context", "resume", "latest"]).expect_success();
    assert!(said.contains("resumed ") && said.contains("sheep") && said.contains("ready to continue"), "{said}");
    // This very file is a session already; a copy elsewhere becomes one.
    chorusctl(&home, ["context", "resume", &saved.file_path]).expect_success();
    let count = |client: &mut Client| client.history("a").len();
    // The acknowledgement of the first resume is no conversation to be saved.
    assert_eq!(count(&mut client), 1);
    let copy = home.path.join("copy.jsonl");
    fs::write(
        &copy,
        "{\"role\":\"user\",\"content\":\"Shear the lambs in May.\"}\n{\"role\":\"assistant\",\"content\":\"Good.\"}\n",
    )
    .expect("a file");
    chorusctl(&home, ["context", "resume", &copy.to_string_lossy()]).expect_success();
    assert_eq!((count(&mut client), client.history("imported").len()), (1, 1), "it belongs to its source");
    assert!(working_set(&mut client, "a").background.expect("a background").contains("lambs"));
    chorusctl(&home, ["context", "resume", "./nothing.json"]).expect_failure_with_hint(3);
    chorusctl(&home, ["context", "resume", "nothing"]).expect_failure_with_hint(3);
}

#[test]
fn a_file_of_markdown_is_gone_on_from_by_its_summary_block() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    ["a", "b"].into_iter().for_each(|agent| client.init(agent));
    // One of a program that writes no comments.
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/transcripts/session_3.md");
    let said = chorusctl(&home, ["--agent", "a", "context", "resume", sample.to_str().expect("a path")]);
    assert!(!said.stderr.contains("warning"), "{}", said.stderr);
    let set = serde_json::to_string(&working_set(&mut client, "a")).expect("serialises");
    for known in [
        "The price list",
        "Value-added tax",
        "Prices are shown with tax",
        "Print the list for the shop window",
        "Before that: A tea shop needs its papers in order.",
    ] {
        assert!(set.contains(known), "{known}: {set}");
    }
    assert!(said.expect_success().contains("Prices are shown with tax"));
    // And one of ours.
    client.append("b", "We decided to paint the shed green. The roof still needs felt.");
    client.save("b", "the shed");
    let markdown = chorusctl(&home, ["--agent", "b", "session", "export", "latest", "--as", "md"]).expect_success();
    assert!(markdown.contains("\n**Decisions Made:**\n- We decided to paint the shed green.\n"), "{markdown}");
    let file = home.temp_dir().join("shed.md");
    fs::write(&file, markdown).expect("a file");
    chorusctl(&home, ["--agent", "a", "context", "resume", file.to_str().expect("a path")]).expect_success();
    let set = working_set(&mut client, "a");
    assert_eq!(set.decisions[0].text, "We decided to paint the shed green.");
    assert_eq!(set.open_tasks[0].text, "The roof still needs felt.");
}
