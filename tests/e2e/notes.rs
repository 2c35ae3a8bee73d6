//! `notes`: what is known in a conversation, and the facts of its agent and project, seen and edited in one place.

use chorus_proto::methods::context::{Clear, ClearParams, Pin, PinParams, Show, ShowParams};
use chorus_proto::methods::continuation::{Compact, CompactParams, Resume, ResumeParams};
use chorus_proto::methods::memory;
use chorus_proto::methods::notes::{
    Add, AddParams, AddResult, Done, DoneParams, Edit, EditParams, List, ListParams, Note, NoteKind, NoteScope,
    NoteView, Resolve, ResolveParams, Rm, RmParams,
};
use chorus_proto::methods::session_branching::{Merge, MergeParams, Side};
use chorus_proto::{Client, ErrorKind, ItemSource, WorkingSet};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

fn agent() -> Option<String> {
    Some("a".into())
}

fn add(client: &mut Client, kind: NoteKind, text: &str) -> AddResult {
    let params = AddParams { agent: agent(), kind: Some(kind), text: text.into(), ..Default::default() };
    client.call::<Add>(&params).expect("notes.add")
}

fn notes(client: &mut Client) -> Vec<Note> {
    client.call::<List>(&ListParams { agent: agent(), ..Default::default() }).expect("notes.list").notes
}

fn texts(client: &mut Client, kind: NoteKind) -> Vec<String> {
    notes(client).into_iter().filter(|note| note.kind == kind).map(|note| note.text).collect()
}

fn done(client: &mut Client, note: &str) {
    client.call::<Done>(&DoneParams { conversation: None, agent: agent(), note: note.into() }).expect("notes.done");
}

fn rm(client: &mut Client, note: &str) {
    client.call::<Rm>(&RmParams { conversation: None, agent: agent(), note: note.into() }).expect("notes.rm");
}

fn edit(client: &mut Client, note: &str, text: &str) -> Note {
    let params = EditParams { conversation: None, agent: agent(), note: note.into(), text: text.into() };
    client.call::<Edit>(&params).expect("notes.edit").note
}

fn compact(client: &mut Client) {
    client
        .call::<Compact>(&CompactParams { conversation: None, agent: agent(), undo: false })
        .expect("context.compact");
}

fn working_set(client: &mut Client) -> WorkingSet {
    let params = ShowParams { agent: agent(), limit: Some(0), ..Default::default() };
    client.call::<Show>(&params).expect("context.show").working_set
}

#[test]
fn edits_survive_a_crash_and_the_undo_of_compactions_and_are_saved() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "We decided to keep the rows. The back-fill for March is still to do.");
    let saved = client.save("a", "before the notes");
    add(&mut client, NoteKind::Decision, "We use Parquet.");
    add(&mut client, NoteKind::Task, "Write the test.");
    add(&mut client, NoteKind::Task, "Tell the owner.");
    assert!(!add(&mut client, NoteKind::Task, "Tell the owner.").added);
    edit(&mut client, "t1", "Write the test of the import.");
    done(&mut client, "2");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let tasks = ["Write the test of the import."];
    assert_eq!(texts(&mut client, NoteKind::Decision), ["We use Parquet."]);
    assert_eq!(texts(&mut client, NoteKind::Task), tasks);
    // The session has the messages, but not the notes: they are saved before another conversation comes.
    let first = client.restore("a", &saved.header.session_id).saved_first.expect("a session with the notes");
    assert_ne!(first.header.id, saved.header.id);
    assert!(texts(&mut client, NoteKind::Task).is_empty());
    assert!(client.restore("a", &first.header.session_id).saved_first.is_none(), "saved once");
    assert_eq!(texts(&mut client, NoteKind::Task), tasks);
    // A compaction finds the rest, and its undo leaves the edits in place.
    compact(&mut client);
    assert_eq!(texts(&mut client, NoteKind::Decision), ["We use Parquet.", "We decided to keep the rows."]);
    done(&mut client, "2");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.call::<Compact>(&CompactParams { conversation: None, agent: agent(), undo: true }).expect("its undo");
    assert_eq!(texts(&mut client, NoteKind::Decision), ["We use Parquet."]);
    assert_eq!(texts(&mut client, NoteKind::Task), tasks);
    let closed: Vec<_> = working_set(&mut client).closed.into_iter().map(|item| item.text).collect();
    assert_eq!(closed, ["Tell the owner.", "The back-fill for March is still to do."]);
}

#[test]
fn what_is_closed_is_not_found_again() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "We decided to keep the rows. We decided to drop the index.");
    client.append("a", "The back-fill is still to do. Don't forget the owner.");
    compact(&mut client);
    rm(&mut client, "d2");
    done(&mut client, "t1");
    for round in 0..3 {
        client.append("a", &format!("Round {round}."));
        compact(&mut client);
        let session = client.history("a").remove(0);
        let params =
            ResumeParams { as_conversation: None, conversation: None, agent: agent(), session: session.short_id };
        client.call::<Resume>(&params).expect("context.resume");
        assert_eq!(texts(&mut client, NoteKind::Decision), ["We decided to keep the rows."], "round {round}");
        assert_eq!(texts(&mut client, NoteKind::Task), ["Don't forget the owner."], "round {round}");
    }
    // Nor from the conversation itself, after the undo of the last compaction.
    compact_and_undo(&mut client);
    assert_eq!(texts(&mut client, NoteKind::Task), ["Don't forget the owner."]);
}

fn compact_and_undo(client: &mut Client) {
    client.append("a", "And on.");
    compact(client);
    client.call::<Compact>(&CompactParams { conversation: None, agent: agent(), undo: true }).expect("its undo");
}

#[test]
fn facts_have_three_scopes_and_one_place() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    chorusctl(&home, ["agent", "config", "a", "project", "billing"]).expect_success();
    client
        .call::<Pin>(&PinParams { conversation: None, agent: agent(), fact: "The old column stays.".into() })
        .expect("pinned");
    let fact =
        |text: &str, scope| AddParams { agent: agent(), text: text.into(), scope: Some(scope), ..Default::default() };
    client.call::<Add>(&fact("Deploys are on Tuesdays.", NoteScope::Agent)).expect("notes.add");
    client.call::<Add>(&fact("Staging comes first.", NoteScope::Project)).expect("notes.add");
    assert!(!client.call::<Add>(&fact("Staging comes first.", NoteScope::Project)).expect("notes.add").added);
    let all = notes(&mut client);
    let shown: Vec<_> = all.iter().map(|note| (note.scope, note.text.as_str(), note.shown)).collect();
    assert_eq!(
        shown,
        [
            (NoteScope::Here, "The old column stays.", NoteView::Full),
            (NoteScope::Project, "Staging comes first.", NoteView::Full),
            (NoteScope::Agent, "Deploys are on Tuesdays.", NoteView::Full),
        ]
    );
    let changed = edit(&mut client, &all[2].note, "Deploys are on Mondays.");
    assert_eq!((changed.scope, changed.source), (NoteScope::Agent, ItemSource::Hand));
    let known = client.call::<memory::List>(&memory::ListParams { agent: agent(), ..Default::default() });
    let known: Vec<_> = known.expect("memory.list").entries.into_iter().map(|entry| entry.text).collect();
    assert_eq!(known, ["Staging comes first.", "Deploys are on Mondays."]);
    rm(&mut client, "f1");
    let removed =
        client.call::<Rm>(&RmParams { conversation: None, agent: agent(), note: all[1].id.clone() }).expect("notes.rm");
    assert!(removed.trash.is_some());
    assert_eq!(texts(&mut client, NoteKind::Fact), ["Deploys are on Mondays."]);
    chorusctl(&home, ["trash", "restore", &all[1].note]).expect_success();
    assert_eq!(texts(&mut client, NoteKind::Fact).len(), 2);
    // Another conversation knows what is known beyond this one.
    client.append("a", "one");
    client.call::<Clear>(&ClearParams { conversation: None, agent: agent(), save: false }).expect("context.clear");
    assert_eq!(texts(&mut client, NoteKind::Fact).len(), 2);
    let page = |offset| ListParams { agent: agent(), offset: Some(offset), limit: Some(1), ..Default::default() };
    let first = client.call::<List>(&page(0)).expect("notes.list");
    assert_eq!((first.notes.len(), first.total, first.next), (1, 2, Some(1)));
    let wrong = AddParams { kind: Some(NoteKind::Task), ..fact("x", NoteScope::Agent) };
    assert_eq!(expect_error_kind(client.call::<Add>(&wrong)), ErrorKind::InvalidParams);
    let unknown = RmParams { conversation: None, agent: agent(), note: "d9".into() };
    assert_eq!(expect_error_kind(client.call::<Rm>(&unknown)), ErrorKind::NotFound);
}

#[test]
fn a_conflict_of_a_merge_is_resolved_by_one_side() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let pin = |client: &mut Client, fact: &str| {
        client.call::<Pin>(&PinParams { conversation: None, agent: agent(), fact: fact.into() }).expect("pinned");
    };
    client.append("a", "Which port?");
    let base = client.save("a", "the beginning");
    pin(&mut client, "The port is 8080.");
    client.append("a", "One line.");
    let one = client.save("a", "one");
    client.restore("a", &base.short_id);
    pin(&mut client, "The port is 9090.");
    client.append("a", "Another line.");
    let other = client.save("a", "another");
    let params = MergeParams {
        as_conversation: None,
        conversation: None,
        agent: agent(),
        a: one.short_id,
        b: other.short_id,
        own: false,
    };
    assert_eq!(client.call::<Merge>(&params).expect("session.merge").conflicts.len(), 1);
    let shown = chorusctl(&home, ["notes", "list", "--kind", "conflict"]).expect_success();
    assert!(shown.contains("c1") && shown.contains("8080") && !shown.contains("Facts"), "{shown:?}");
    chorusctl(&home, ["notes", "resolve", "1"]).expect_failure(2);
    chorusctl(&home, ["notes", "resolve", "1", "--keep", "A"]).expect_success();
    assert_eq!(client.pinned_facts("a"), ["The port is 8080."]);
    assert!(texts(&mut client, NoteKind::Conflict).is_empty());
    let decided = "“The port is 8080.” holds, not “The port is 9090.”";
    assert_eq!(texts(&mut client, NoteKind::Decision), [decided]);
    let params = ResolveParams { conversation: None, agent: agent(), note: "d1".into(), keep: Some(Side::A) };
    assert_eq!(expect_error_kind(client.call::<Resolve>(&params)), ErrorKind::InvalidParams);
}

#[test]
fn pins_of_many_windows_have_their_share_of_the_window_and_a_warning_names_the_command() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Hello.");
    let mut warned = 0;
    // Together they are ten times what the window may have.
    for n in 0..300 {
        let fact = format!("Fact {n} is that {}", "the column of the old table stays where it is, ".repeat(40));
        let warnings =
            client.call::<Pin>(&PinParams { conversation: None, agent: agent(), fact }).expect("pinned").warnings;
        warned += u64::from(warnings.iter().any(|text| text.contains("chorusctl context unpin N")));
    }
    assert!(warned > 250, "{warned}");
    let params = ShowParams { agent: agent(), window: true, ..Default::default() };
    let window = client.call::<Show>(&params).expect("context.show").window.expect("a window");
    assert!(window.budget.tokens < 15_000, "{:?}", window.budget);
    let last = chorusctl(&home, ["context", "pin", "the last one"]);
    assert!(last.stderr.contains("of 301 pinned facts") && last.stderr.contains("context unpin"), "{}", last.stderr);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().pinned_facts("a").len(), 301);
}

#[test]
fn what_is_known_is_shown() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    chorusctl(&home, ["notes"]).expect_success();
    client.append("a", "We decided to keep the rows of src/import.rs. The back-fill is still to do.");
    compact(&mut client);
    chorusctl(&home, ["notes", "add", "--decision", "We use Parquet."]).expect_success();
    for command in [&["notes"][..], &["context", "show"], &["show"], &["status", "a"]] {
        let shown = chorusctl(&home, command).expect_success();
        for text in ["Decisions", "We decided to keep the rows", "We use Parquet. (by hand)", "Open tasks", "back-fill"]
        {
            assert!(shown.contains(text), "{text} in {command:?}: {shown}");
        }
    }
    let status = chorusctl(&home, ["status", "a"]).expect_success();
    for text in ["does not answer", "has no model", "permissions", "standard", "last session"] {
        assert!(status.contains(text), "{text}: {status}");
    }
    chorusctl(&home, ["notes", "rm", "1"]).expect_failure_with_hint(2);
    chorusctl(&home, ["notes", "done", "9"]).expect_failure_with_hint(3);
    chorusctl(&home, ["notes", "done", "d1"]).expect_failure_with_hint(2);
}

/// An id of digits alone looks like a number without its letter, one that begins with `d` like a decision.
#[test]
fn a_fact_of_the_agent_is_found_by_whatever_its_id_looks_like() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for text in ["Deploys are on Tuesdays.", "Staging comes first."] {
        let fact = AddParams { agent: agent(), text: text.into(), scope: Some(NoteScope::Agent), ..Default::default() };
        client.call::<Add>(&fact).expect("notes.add");
    }
    daemon.kill9();
    let catalog = rusqlite::Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    for (start, text) in [("22253498", "Deploys%"), ("d2253498", "Staging%")] {
        let set = format!("UPDATE memory SET uid = CAST(x'{start}' || substr(uid, 5) AS BLOB) WHERE text LIKE ?1");
        assert_eq!(catalog.execute(&set, [text]).expect("another id"), 1);
    }
    drop(catalog);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(edit(&mut client, "22253498", "Deploys are on Mondays.").text, "Deploys are on Mondays.");
    assert_eq!(edit(&mut client, "d2253498", "Staging comes last.").text, "Staging comes last.");
    rm(&mut client, "22253498");
    rm(&mut client, "d2253498");
    assert!(notes(&mut client).is_empty());
    let unknown = EditParams { conversation: None, agent: agent(), note: "22253498".into(), text: "gone".into() };
    assert_eq!(expect_error_kind(client.call::<Edit>(&unknown)), ErrorKind::InvalidParams);
}
