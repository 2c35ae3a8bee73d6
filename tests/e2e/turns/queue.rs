//! Messages that arrive during a turn.

use chorus_proto::methods::send::{Cancel, CancelParams};
use chorus_tests::model_server::Answer;
use chorus_tests::{DEADLINE, wait_until};

use super::{Rig, record};

#[test]
fn each_has_its_own_turn_in_the_order_of_arrival() {
    let rig = Rig::new();
    let mut client = rig.client();
    rig.answer(Answer::text(["first"]).gate("go"));
    for n in 0..5 {
        rig.say(&format!("answer {n}"));
    }
    let first = rig.send_beside("zero");
    rig.server.reached("go");
    let others: Vec<_> = (0..5).map(|n| rig.send_beside(&format!("message {n}"))).collect();
    assert_eq!(record(&mut client).len(), 1, "nothing comes between");
    rig.server.open("go");
    first.join().expect("the client").expect("a turn");
    for other in others {
        other.join().expect("the client").expect("a turn");
    }
    let said = record(&mut client);
    assert_eq!(said.len(), 12);
    let mut asked: Vec<&str> = said.iter().step_by(2).map(|(_, text)| text.as_str()).collect();
    let answered: Vec<&str> = said.iter().skip(1).step_by(2).map(|(_, text)| text.as_str()).collect();
    assert_eq!(answered, ["first", "answer 0", "answer 1", "answer 2", "answer 3", "answer 4"]);
    asked[1..].sort_unstable();
    assert_eq!(asked, ["zero", "message 0", "message 1", "message 2", "message 3", "message 4"]);
}

#[test]
fn one_that_waits_goes_on_when_the_one_before_it_is_cancelled() {
    let rig = Rig::new();
    rig.answer(Answer::empty().gate("never"));
    rig.say("Second.");
    let first = rig.send_beside("one");
    rig.server.reached("never");
    let second = rig.send_beside("two");
    let mut client = rig.client();
    let params = CancelParams { agent: Some("a".into()), turn_id: None };
    let ended = client.call::<Cancel>(&params).expect("send.cancel").turn_id;
    assert!(ended.is_some() && first.join().expect("the client").is_err());
    assert_eq!(second.join().expect("the client").expect("a turn").reply, "Second.");
    wait_until("both messages", DEADLINE, || (record(&mut client).len() == 3).then_some(()));
}
