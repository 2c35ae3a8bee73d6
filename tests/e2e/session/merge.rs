//! `session merge`: two lines come together, and nothing is chosen silently.

use chorus_proto::methods::context::{Pin, PinParams, Show, ShowParams};
use chorus_proto::methods::session_branching::{Merge, MergeParams, MergeResult};
use chorus_proto::{CallError, Client, ErrorKind, Session, Trigger, WorkingSet};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;

use super::{parted, say, tree};
use crate::home;
use crate::tools::self_edit::start_fixture;

fn merge(client: &mut Client, a: &Session, b: &Session) -> Result<MergeResult, CallError> {
    let (a, b) = (a.short_id.clone(), b.short_id.clone());
    client.call::<Merge>(&MergeParams {
        as_conversation: None,
        conversation: None,
        agent: Some("a".into()),
        a,
        b,
        own: false,
    })
}

fn working_set(client: &mut Client) -> WorkingSet {
    let params = ShowParams { agent: Some("a".into()), limit: Some(0), ..Default::default() };
    client.call::<Show>(&params).expect("context.show").working_set
}

fn pin(client: &mut Client, fact: &str) {
    client.call::<Pin>(&PinParams { conversation: None, agent: Some("a".into()), fact: fact.into() }).expect("pinned");
}

/// Two lines with facts and decisions, some of which contradict each other.
fn disputed(client: &mut Client) -> (Session, Session) {
    pin(client, "Berlin is where we are.");
    say(client, &["Shall we keep the rows?", "Let me look."]);
    let base = client.save("a", "the beginning");
    pin(client, "The port is 8080.");
    say(client, &["We decided to use Postgres for the cache.", "Noted."]);
    let one = client.save("a", "one line");
    client.restore("a", &base.short_id);
    pin(client, "The port is 9090.");
    say(client, &["We decided to use Redis for the cache.", "Noted, we decided to keep the rows."]);
    (one, client.save("a", "the other line"))
}

#[test]
fn both_lines_are_told_of_and_what_they_know_is_united() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (one, other) = disputed(&mut client);
    say(&mut client, &["not saved yet"]);
    let done = merge(&mut client, &one, &other).expect("merged");
    assert_eq!((done.common, done.messages, done.generated), (2, 3, true));
    assert_eq!(done.saved_first.map(|session| session.header.trigger), Some(Trigger::Restore));
    for text in ["one line", "the other line", "Postgres for the cache", "Redis for the cache", "please decide"] {
        let named =
            text.replace("one line", &one.header.session_id).replace("the other line", &other.header.session_id);
        assert!(done.account.contains(&named), "{named} in {}", done.account);
    }
    for _ in 0..2 {
        let messages = client.messages("a");
        assert_eq!((messages.len(), messages[2].generated, &messages[2].content), (3, true, &done.account));
        let set = working_set(&mut client);
        let texts = |items: &[chorus_proto::Item]| items.iter().map(|item| item.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&set.pinned_facts), ["Berlin is where we are.", "The port is 8080.", "The port is 9090."]);
        let decisions = texts(&set.decisions);
        assert!(
            decisions.len() == 3 && decisions[0].contains("Postgres") && decisions[1].contains("Redis"),
            "{decisions:?}"
        );
        let conflicts = texts(&set.conflicts);
        assert!(
            conflicts.len() == 2 && conflicts[0].contains("8080") && conflicts[1].contains("Redis"),
            "{conflicts:?}"
        );
        assert_eq!(set.conflicts, done.conflicts);
        // The same after a crash.
        daemon.kill9();
        daemon = Daemon::start(&home);
        client = daemon.client();
    }
    let live = tree(&mut client, "a").live.expect("a live context");
    assert_eq!((live.parent_id, live.unsaved), (Some(one.header.id), 1));
    say(&mut client, &["The port is 9090, then."]);
    let saved = client.save("a", "together");
    assert_eq!((saved.header.parent_id, saved.header.message_count), (Some(one.header.id), 4));
    assert_eq!(client.get_session("a", &one.short_id).0, one, "the first is as it was");
}

#[test]
fn an_account_is_the_models_where_there_is_one_and_contradictions_are_listed_all_the_same() {
    let fixture = start_fixture("standard");
    let mut client = fixture.client();
    // Summaries are asked for, too.
    fixture.models().anthropic().set_fallback(Response::text(["Line one chose Postgres, line two Redis."]));
    let (one, other) = disputed(&mut client);
    let done = merge(&mut client, &one, &other).expect("merged");
    assert!(
        !done.generated && done.account.contains("\n\nLine one chose Postgres, line two Redis.\n\n"),
        "{}",
        done.account
    );
    assert!(done.account.contains("8080") && client.messages("a")[2].generated);
    let requests = fixture.models().requests();
    let mut asked = requests.iter().map(|request| request.body.to_string());
    let asked = asked.find(|body| body.contains("two branches")).expect("the model was asked");
    assert!(
        asked.contains("> We decided to use Postgres for the cache.") && asked.contains("nobody is speaking"),
        "{asked}"
    );
    // One that fails costs nothing but its words.
    fixture.models().anthropic().set_fallback(Response::error(400, "{}"));
    let done = merge(&mut client, &one, &other).expect("merged");
    assert!(done.generated && done.account.contains("Decisions: "), "{}", done.account);
}

#[test]
fn what_cannot_be_merged_is_said_and_nothing_changes() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    let (one, other) = parted(&mut client, &["Keep them."], &["Drop them."]);
    let before = client.message_texts("a");
    assert_eq!(expect_error_kind(merge(&mut client, &one, &one)), ErrorKind::Denied);
    let params = |agent: &str, own| MergeParams {
        as_conversation: None,
        conversation: None,
        agent: Some(agent.into()),
        a: one.short_id.clone(),
        b: other.short_id.clone(),
        own,
    };
    assert_eq!(expect_error_kind(client.call::<Merge>(&params("b", true))), ErrorKind::Denied);
    std::fs::write(&other.file_path, "no session").expect("written");
    assert_eq!(expect_error_kind(merge(&mut client, &one, &other)), ErrorKind::CorruptSession);
    std::fs::remove_file(&other.file_path).expect("removed");
    assert_eq!(expect_error_kind(merge(&mut client, &one, &other)), ErrorKind::SessionNotFound);
    assert_eq!(client.message_texts("a"), before);
}

#[test]
fn the_command_line_merges_lines_of_which_one_says_nothing_more() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (one, other) = parted(&mut client, &["The port is 80."], &["The port is 81."]);
    let said = chorusctl(&home, ["session", "merge", &one.short_id, &other.short_id]).expect_success();
    assert!(said.contains("2 shared messages plus a summary of both branches"), "{said}");
    let base = tree(&mut client, "a").roots[0].to_string();
    let value = chorusctl(&home, ["session", "merge", &base, &one.short_id, "--json"]).expect_json();
    assert_eq!((value["common"].as_u64(), value["messages"].as_u64()), (Some(2), Some(3)));
    assert!(value["account"].as_str().expect("a text").contains("No further messages."), "{value}");
    chorusctl(&home, ["session", "merge", &one.short_id, &one.short_id]).expect_failure_with_hint(6);
}
