//! Keys: a message that is sent twice is one.

use chorus_proto::ErrorKind;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::chat::kind_of;
use chorus_tests::model_server::Answer;

use super::{Rig, params, record};

fn keyed(text: &str) -> SendParams {
    SendParams { key: Some("k1".into()), ..params(text) }
}

#[test]
fn the_same_key_gives_the_first_answer_even_after_a_crash() {
    let rig = Rig::new();
    let mut client = rig.client();
    rig.say("Once.");
    let first = client.call::<Send>(&keyed("Do it.")).expect("a turn");
    let again = client.call::<Send>(&keyed("Do it.")).expect("the first answer");
    assert_eq!((again.reply.as_str(), again.turn_id), ("Once.", first.turn_id));
    let rig = rig.crash();
    let again = rig.client().call::<Send>(&keyed("Do it.")).expect("the first answer");
    assert_eq!(again.turn_id, first.turn_id);
    assert_eq!(record(&mut rig.client()).len(), 2);
    assert_eq!(rig.server.requests().len(), 1);
}

#[test]
fn the_same_key_waits_for_the_turn_that_runs() {
    let rig = Rig::new();
    rig.answer(Answer::text(["On"]).gate("go").then("ce."));
    let send = || {
        let mut client = rig.client();
        std::thread::spawn(move || client.call::<Send>(&keyed("Do it.")).expect("a turn"))
    };
    let first = send();
    rig.server.reached("go");
    let second = send();
    rig.server.open("go");
    let (first, second) = (first.join().expect("a client"), second.join().expect("a client"));
    assert_eq!((first.turn_id, first.reply.as_str()), (second.turn_id, "Once."));
    assert_eq!((rig.server.requests().len(), record(&mut rig.client()).len()), (1, 2));
}

#[test]
fn a_turn_that_was_cut_off_is_not_run_again_by_its_key() {
    let rig = Rig::new();
    rig.answer(Answer::text(["On"]).gate("never"));
    let mut client = rig.client();
    let cut = std::thread::spawn(move || client.call::<Send>(&keyed("Do it.")));
    rig.server.reached("never");
    let rig = rig.crash();
    assert!(cut.join().expect("a client").is_err());
    assert_eq!(kind_of(rig.client().call::<Send>(&keyed("Do it."))), ErrorKind::Interrupted);
    assert_eq!((rig.server.requests().len(), record(&mut rig.client()).len()), (1, 1));
}
