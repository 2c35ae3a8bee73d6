//! Notes that people edit while a model writes down what left the window.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::continuation::{Compact, CompactParams};
use chorus_proto::methods::notes::{Add, AddParams, NoteKind, Rm, RmParams};
use chorus_proto::{Client, EventType, NewMessage, Role, WorkingSet};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use serde_json::json;

use crate::send::{send, start_fixture};

fn working_set(client: &mut Client) -> WorkingSet {
    let params = ShowParams { agent: Some("a".into()), limit: Some(0), ..Default::default() };
    client.call::<Show>(&params).expect("context.show").working_set
}

/// The texts of the decisions and of what was closed.
fn known(client: &mut Client) -> [Vec<String>; 2] {
    let WorkingSet { decisions, closed, .. } = working_set(client);
    [decisions, closed].map(|items| items.into_iter().map(|item| item.text).collect())
}

#[test]
fn they_outlast_the_notes_of_the_model_a_crash_and_the_undo() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let limit = (Some("compact_at_tokens".into()), Some("2000".into()));
    client.call::<Config>(&ConfigParams { name: "a".into(), key: limit.0, value: limit.1 }).expect("agent.config");
    let said = |n: u32| match n {
        0 => "We decided to keep the rows. We decided to drop the index.".to_owned(),
        n => format!("The port of service {n:03} is {}. {}", 8000 + n, "x".repeat(96)),
    };
    client.append_all("a", (0..140).map(|n| NewMessage::text(Role::User, said(n))).collect());
    fixture.models().on_structured_request(|body| {
        let decided = json!([{"text": "The index stays after all", "source": 1}]);
        let notes = json!({"background": "Ports.", "topics": [], "decisions": decided, "pending": [], "done": [],
            "facts": [], "files": [], "conflicts": []});
        Response::structured(body, &notes).gate("notes")
    });
    fixture.reply("Noted.");
    send(&mut client, "Go.").expect("a turn");
    fixture.models().wait_for_gate("notes");
    let by_rules = known(&mut client)[0].clone();
    assert_eq!(by_rules, ["We decided to keep the rows.", "We decided to drop the index."]);
    let text = "We use Parquet.".to_owned();
    let decision = AddParams { agent: Some("a".into()), kind: Some(NoteKind::Decision), text, ..Default::default() };
    client.call::<Add>(&decision).expect("notes.add");
    client.call::<Rm>(&RmParams { conversation: None, agent: Some("a".into()), note: "d2".into() }).expect("notes.rm");
    fixture.models().open_gate("notes");
    fixture.wait_for_events(EventType::ContextNoted, 1);
    let expected = || {
        let decisions = ["The index stays after all", "We use Parquet."];
        [decisions.map(str::to_owned).to_vec(), vec!["We decided to drop the index.".to_owned()]]
    };
    assert_eq!(known(&mut client), expected());
    let fixture = fixture.crash();
    let mut client = fixture.client();
    assert_eq!(known(&mut client), expected());
    client
        .call::<Compact>(&CompactParams { conversation: None, agent: Some("a".into()), undo: true })
        .expect("its undo");
    for _ in 0..2 {
        let [decisions, closed] = known(&mut client);
        assert_eq!(
            (decisions, closed),
            (vec!["We use Parquet.".to_owned()], vec!["We decided to drop the index.".to_owned()])
        );
    }
    let fixture = fixture.crash();
    assert_eq!(known(&mut fixture.client())[0], ["We use Parquet."]);
}
