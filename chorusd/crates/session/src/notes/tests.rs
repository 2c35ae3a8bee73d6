//! Tests of edits of notes.

use chorus_proto::ItemSource;
use chorus_proto::methods::session_branching::Side;

use super::*;

fn item(text: &str, source: ItemSource) -> Item {
    Item { id: format!("id-{text}"), text: text.into(), source, message_id: None }
}

fn texts(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.text.as_str()).collect()
}

fn edited(set: &mut WorkingSet, edit: NoteEdit) -> Result<AppliedEdit, NoteError> {
    let applied = edit.apply(set)?;
    // The journal has them as JSON.
    let json = serde_json::to_string(&applied.changes).unwrap();
    apply_changes(set, &serde_json::from_str::<Vec<NoteChange>>(&json).unwrap());
    Ok(applied)
}

fn set() -> WorkingSet {
    WorkingSet {
        pinned_facts: vec![item("pin", ItemSource::Hand)],
        facts: vec![item("fact", ItemSource::Model)],
        decisions: vec![item("one", ItemSource::Rule), item("two", ItemSource::Rule)],
        open_tasks: vec![item("task", ItemSource::Rule)],
        ..WorkingSet::default()
    }
}

#[test]
fn notes_are_named_by_letter_and_number_or_by_id() {
    let set = set();
    let find = |text| NoteRef::any(text).find(&set);
    assert_eq!(find("f1"), Some((NoteList::PinnedFacts, 0)));
    assert_eq!(find("F2"), Some((NoteList::Facts, 0)));
    assert_eq!(find("d2"), Some((NoteList::Decisions, 1)));
    assert_eq!([find("d0"), find("d3"), find("1"), find(""), find("x1"), find("é1")], [None; 6]);
    assert_eq!(find("id-two"), Some((NoteList::Decisions, 1)));
    assert_eq!(find("id-tw"), Some((NoteList::Decisions, 1)));
    assert_eq!(find("id-t"), None, "a task, too");
    assert_eq!(NoteRef::task("1").find(&set), Some((NoteList::OpenTasks, 0)));
}

#[test]
fn what_is_done_or_removed_is_closed_and_what_is_edited_belongs_to_a_person() {
    let mut set = set();
    let note = NoteRef::any("d2");
    let done = edited(&mut set, NoteEdit::Edit { note, text: "changed".into() }).unwrap();
    assert_eq!((done.number.as_str(), set.decisions[1].source), ("d2", ItemSource::Hand));
    edited(&mut set, NoteEdit::Done { note: NoteRef::task("1") }).unwrap();
    edited(&mut set, NoteEdit::Remove { note: NoteRef::any("d1") }).unwrap();
    edited(&mut set, NoteEdit::Remove { note: NoteRef::any("f1") }).unwrap();
    assert_eq!((texts(&set.decisions), texts(&set.closed)), (vec!["changed"], vec!["task", "one"]));
    assert!(set.pinned_facts.is_empty() && set.open_tasks.is_empty());
    let wrong = edited(&mut set, NoteEdit::Done { note: NoteRef::task("d1") });
    assert_eq!(wrong, Err(NoteError::WrongKind { number: "d1".into(), list: NoteList::Decisions }));
    let unclear = edited(&mut set, NoteEdit::Remove { note: NoteRef::any("1") });
    assert_eq!(unclear, Err(NoteError::NeedsLetter("1".into())));
    let again = item("changed", ItemSource::Hand);
    let known = edited(&mut set, NoteEdit::Add { list: NoteList::Decisions, item: again }).unwrap();
    assert_eq!((known.changes.len(), known.number.as_str()), (0, "d1"));
}

#[test]
fn a_conflict_is_resolved_by_one_side() {
    for (text, keep) in [
        ("one: “The port is 8080.” – two: “The port is 9090.”", Side::A),
        ("earlier: The port is 9090.; later: The port is 8080.", Side::B),
    ] {
        let mut set = set();
        set.facts = vec![item("The port  is 8080.", ItemSource::Model), item("the port is 9090", ItemSource::Model)];
        set.conflicts = vec![item(text, ItemSource::Rule)];
        let edit = NoteEdit::Resolve { note: NoteRef::conflict("1"), keep, id: "new".into() };
        let done = edited(&mut set, edit).unwrap();
        let (kept, removed) = done.resolution.unwrap();
        assert_eq!((kept.as_str(), removed.len()), ("The port is 8080.", 1));
        assert_eq!((texts(&set.facts), set.conflicts.len()), (vec!["The port  is 8080."], 0));
        assert_eq!(set.decisions.last().unwrap().text, "“The port is 8080.” holds, not “The port is 9090.”");
        assert_eq!(set.closed.len(), 2);
    }
    let mut odd = WorkingSet { conflicts: vec![item("who knows", ItemSource::Model)], ..WorkingSet::default() };
    let edit = NoteEdit::Resolve { note: NoteRef::conflict("c1"), keep: Side::A, id: String::new() };
    assert_eq!(edited(&mut odd, edit), Err(NoteError::NoSides("c1".into())));
}

#[test]
fn a_long_statement_is_known_by_its_beginning() {
    use super::conflict_sides::is_statement;
    assert!(is_statement("We keep the old…", "we keep the old table, and more"));
    assert!(!is_statement("…", "anything"));
    assert!(!is_statement("We keep it", "We keep it all"));
}
