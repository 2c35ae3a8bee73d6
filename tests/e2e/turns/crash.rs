//! The daemon ends in the middle of a turn.

use chorus_proto::{EventType, Role};
use chorus_tests::chat::Chat as _;
use chorus_tests::model_server::Answer;
use serde_json::json;

use super::{MODELS, Rig, assert_legal, record, send};

#[test]
fn while_the_model_speaks_the_message_is_kept_and_the_turn_marked() {
    for model in MODELS {
        let rig = Rig::on(model);
        rig.answer(Answer::text(["Half"]).gate("never"));
        let turn = rig.send_beside("Talk.");
        rig.server.reached("never");
        let rig = rig.crash();
        assert!(turn.join().expect("the client").is_err());
        assert!(rig.wait_for(EventType::TurnInterrupted, 1)[0].data["reason"].as_str().is_some());
        let mut client = rig.client();
        assert_eq!(record(&mut client), [(Role::User, "Talk.".to_owned())]);
        rig.say("Here.");
        assert_eq!(send(&mut client, "Go on.").expect("a turn").reply, "Here.");
        let rig = rig.crash();
        assert_eq!(rig.wait_for(EventType::TurnInterrupted, 1).len(), 1, "it is marked once");
    }
}

#[test]
fn an_agent_that_a_turn_was_cut_off_of_needs_no_request_to_be_legal() {
    let rig = Rig::new();
    rig.answer(Answer::calls("c1", "list_models", &json!({})).call("c2", "list_models", &json!({})));
    rig.answer(Answer::empty().gate("never"));
    let turn = rig.send_beside("Look.");
    rig.server.reached("never");
    let rig = rig.crash();
    drop(turn.join());
    rig.wait_for(EventType::TurnInterrupted, 1);
    let shown = rig.client().shown("a");
    assert_legal(&shown);
    assert_eq!(
        shown.iter().filter(|message| message.is_error).count(),
        0,
        "finished tools are not run or marked again"
    );
}
