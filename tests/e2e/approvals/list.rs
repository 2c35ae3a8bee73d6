//! The list comes in pages.

use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::{List, ListParams, Status};
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::ctl::chorusctl;
use serde_json::Value;

use super::{approve, ask, open, start_fixture};

#[test]
fn pages_have_all_and_the_command_line_joins_them() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let (_, turn) = ask(&fixture, 3);
    for _ in 0..2 {
        let asked = open(&mut client, 1).remove(0);
        approve(&mut client, &asked.id).expect("heard");
    }
    open(&mut client, 1);
    let (mut found, mut next, mut pages) = (Vec::new(), Some(0), 0);
    while let Some(offset) = next {
        let params = ListParams { all: true, offset: Some(offset), limit: Some(2), ..Default::default() };
        let page = client.call::<List>(&params).expect("approvals.list");
        found.extend(page.approvals);
        (next, pages) = (page.next, pages + 1);
    }
    let statuses: Vec<_> = found.iter().map(|approval| approval.status).collect();
    assert_eq!((pages, statuses), (2, vec![Status::Approved, Status::Approved, Status::Open]));
    let none = ListParams { limit: Some(0), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<List>(&none)), ErrorKind::InvalidParams);
    let json = chorusctl(&fixture.home, ["--json", "approvals", "list", "--all"]).expect_json();
    let ids: Vec<&str> =
        json["approvals"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(ids, found.iter().map(|approval| approval.id.as_str()).collect::<Vec<_>>());
    let lines = chorusctl(&fixture.home, ["--format", "jsonl", "approvals", "list", "--all"]).expect_success();
    let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!((lines.lines().count(), &first["id"]), (3, &Value::from(ids[0])));
    let text = chorusctl(&fixture.home, ["approvals", "list", "--all"]).expect_success();
    assert!(found.iter().all(|approval| text.contains(&approval.id)), "{text}");
    approve(&mut client, &found[2].id).expect("heard");
    turn.join().expect("the client").expect("a turn");
}

#[test]
fn the_list_says_how_to_answer() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let none = chorusctl(&fixture.home, ["approvals"]);
    assert_eq!(none.stderr, "no pending approvals\n");
    let (_, turn) = ask(&fixture, 1);
    let asked = open(&mut client, 1).remove(0);
    let listed = chorusctl(&fixture.home, ["approvals"]);
    let hint = format!("hint: answer: chorusctl approvals approve {0}, or: chorusctl approvals deny {0}\n", asked.id);
    assert_eq!(listed.stderr, hint, "{listed:?}");
    approve(&mut client, &asked.id).expect("heard");
    turn.join().expect("the turn").expect("a reply");
}
