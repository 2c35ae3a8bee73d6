//! What one conversation has, the others do not.

use chorus_proto::methods::context::{
    Append, AppendParams, Clear, ClearParams, History, HistoryParams, Pin, PinParams, Restore, RestoreParams, Rewind,
    RewindParams, Show, ShowParams,
};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::methods::session_branching::{Branch, BranchParams};
use chorus_proto::{Client, ErrorKind, EventType};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{append, appended, list, open, save, texts};
use crate::home;

/// The name of the session that `selector` finds, asked in a conversation of `a`.
fn found(client: &mut Client, conversation: Option<&str>, selector: &str) -> Result<String, ErrorKind> {
    let params = GetParams {
        agent: Some("a".into()),
        conversation: conversation.map(str::to_owned),
        session: selector.into(),
        ..Default::default()
    };
    let got = client.call::<Get>(&params).map_err(|error| expect_error_kind::<()>(Err(error)))?;
    Ok(got.session.header.session_id)
}

#[test]
fn each_has_its_own_messages_pins_and_keys_over_a_stop_and_a_crash() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    open(&mut client, "review");
    append(&mut client, None, "of main");
    append(&mut client, Some("review"), "of the review");
    let pin = PinParams { agent: Some("a".into()), conversation: Some("review".into()), fact: "a fact".into() };
    client.call::<Pin>(&pin).expect("context.pin");
    // A key that was used in the one is unknown in the other.
    for (conversation, messages) in [(None, 2), (Some("review"), 2), (None, 2), (Some("review"), 2)] {
        let params = AppendParams {
            key: Some("k1".into()),
            conversation: conversation.map(str::to_owned),
            ..appended("once each")
        };
        assert_eq!(client.call::<Append>(&params).expect("context.append").messages, messages);
    }
    let check = |client: &mut Client| {
        assert_eq!(texts(client, "main"), ["of main", "once each"]);
        assert_eq!(texts(client, "review"), ["of the review", "once each"]);
        assert!(client.pinned_facts("a").is_empty(), "pinned in the other one");
        let params = ShowParams { agent: Some("a".into()), conversation: Some("review".into()), ..Default::default() };
        let shown = client.call::<Show>(&params).expect("context.show");
        assert_eq!(shown.working_set.pinned_facts.len(), 1);
    };
    check(&mut client);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    check(&mut daemon.client());
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    check(&mut client);
    let params = RewindParams { agent: Some("a".into()), conversation: Some("review".into()), ..Default::default() };
    client.call::<Rewind>(&params).expect("context.rewind");
    let clear = ClearParams { agent: Some("a".into()), ..Default::default() };
    client.call::<Clear>(&clear).expect("context.clear");
    assert_eq!((texts(&mut client, "main").len(), texts(&mut client, "review").len()), (0, 1));
    let told: Vec<_> = client
        .events(0)
        .into_iter()
        .filter(|event| event.kind == EventType::MessageAppended)
        .map(|event| event.conversation)
        .collect();
    let review = || Some("review".to_owned());
    assert_eq!(told, [None, review(), None, review()]);
}

#[test]
fn the_history_spans_all_and_latest_means_the_one_that_is_asked_in() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let review = open(&mut client, "review");
    append(&mut client, None, "of main");
    let first = save(&mut client, None, "main first");
    append(&mut client, Some("review"), "of the review");
    let second = save(&mut client, Some("review"), "review");
    append(&mut client, None, "more");
    let third = save(&mut client, None, "main second");
    assert_eq!((&first.header.conversation, &third.header.conversation), (&None, &None));
    let noted = second.header.conversation.clone().expect("the conversation");
    assert_eq!((noted.id, &*noted.name), (review.id, "review"));
    let file = std::fs::read_to_string(&second.file_path).expect("the file");
    assert!(file.contains(&format!("\"conversation\": {{\"id\":\"{}\",\"name\":\"review\"}}", review.id)), "{file}");
    let names: Vec<_> = client.history("a").into_iter().map(|session| session.header.session_id).collect();
    let [first, second, third] = [first, second, third].map(|session| session.header.session_id);
    assert_eq!(names, [&*third, &*second, &*first]);
    for (conversation, selector, session) in [
        (None, "latest", &third),
        (None, "latest~1", &first),
        (Some("review"), "latest", &second),
        (None, "@", &third),
        (Some("review"), "@", &second),
        (None, "@review", &second),
        (Some("review"), "@main", &third),
        (None, "-", &first),
    ] {
        assert_eq!(found(&mut client, conversation, selector).as_ref(), Ok(session), "{conversation:?} {selector}");
    }
    assert_eq!(found(&mut client, Some("review"), "latest~1"), Err(ErrorKind::SessionNotFound));
    assert_eq!(found(&mut client, None, "@nobody"), Err(ErrorKind::ConversationNotFound));
    let params = HistoryParams { agent: Some("a".into()), conversation: Some("review".into()), ..Default::default() };
    let listed = client.call::<History>(&params).expect("context.history");
    assert_eq!((listed.total, &listed.sessions[0].header.session_id), (1, &second));
    // The files say it all: a new index finds the same.
    drop(client);
    assert!(daemon.terminate().success());
    std::fs::remove_file(home.path.join("db/chorus.db")).expect("the catalog");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let again = wait_until("the new index", DEADLINE, || found(&mut client, Some("review"), "latest").ok());
    assert_eq!(again, second);
}

#[test]
fn a_restore_into_a_new_one_displaces_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    append(&mut client, None, "first");
    let session = save(&mut client, None, "first").header.session_id;
    append(&mut client, None, "second");
    let restore = |name: &str| RestoreParams {
        agent: Some("a".into()),
        session: session.clone(),
        as_conversation: Some(name.into()),
        ..Default::default()
    };
    let restored = client.call::<Restore>(&restore("again")).expect("context.restore");
    assert_eq!((restored.messages, restored.saved_first), (1, None));
    assert_eq!(texts(&mut client, "again"), ["first"]);
    assert_eq!(texts(&mut client, "main"), ["first", "second"]);
    assert_eq!(expect_error_kind(client.call::<Restore>(&restore("again"))), ErrorKind::AlreadyExists);
    assert_eq!(expect_error_kind(client.call::<Restore>(&restore("Not A Name"))), ErrorKind::InvalidName);
    let absent = RestoreParams { session: "nothing".into(), ..restore("other") };
    assert_eq!(expect_error_kind(client.call::<Restore>(&absent)), ErrorKind::SessionNotFound);
    assert_eq!(list(&mut client, true).len(), 2, "what failed has created nothing");
    let branch = BranchParams {
        agent: Some("a".into()),
        session: "@".into(),
        as_conversation: Some("branch".into()),
        ..Default::default()
    };
    let branched = client.call::<Branch>(&branch).expect("session.branch");
    assert_eq!(branched.messages, 2);
    append(&mut client, Some("branch"), "third");
    assert_eq!(texts(&mut client, "branch"), ["first", "second", "third"]);
    assert_eq!(texts(&mut client, "main"), ["first", "second"]);
    drop(client);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(texts(&mut client, "branch"), ["first", "second", "third"]);
    assert_eq!(texts(&mut client, "again"), ["first"]);
}

#[test]
fn a_conversation_that_is_not_there_is_named_and_never_made_by_mistake() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    open(&mut client, "review");
    let params = AppendParams { conversation: Some("reviev".into()), ..appended("lost?") };
    let error = client.call::<Append>(&params).expect_err("no such conversation");
    let shown = format!("{error:?}");
    assert!(shown.contains("agent a has no conversation") && shown.contains("did you mean `review`?"), "{shown}");
    assert_eq!(expect_error_kind::<()>(Err(error)), ErrorKind::ConversationNotFound);
    assert_eq!(list(&mut client, true).len(), 2);
}
