//! When schedules run, and what their runs leave.

use chorus_proto::EventType;
use chorus_proto::methods::schedule::{
    Pause, PauseParams, Remove, RemoveParams, Resume, ResumeParams, Run, RunOutcome, RunParams, ScheduleState,
};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, InProcessDaemon, wait_until};
use jiff::SignedDuration;

use super::{HOUR, MINUTE, add, create_agent, every, find, let_the_timer_look, listed, once, ran, sent, start, time};

#[test]
fn the_message_is_a_turn_in_a_conversation_of_its_own_at_each_time() {
    let (server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    let next = add(&mut client, every("look", HOUR));
    assert_eq!(next, [time("2026-03-02T07:00:00Z"), time("2026-03-02T08:00:00Z"), time("2026-03-02T09:00:00Z")]);
    hands.advance(HOUR - MINUTE * 2);
    let_the_timer_look(&mut client, &hands, "sentinel");
    assert!(find(&mut client, "look").runs.is_empty() && server.requests().len() == 1);
    hands.advance(MINUTE);
    let look = ran(&mut client, "look", 1);
    assert_eq!((look.runs[0].due_at, look.runs[0].outcome), (next[0], RunOutcome::Ok));
    assert_eq!((look.next_at, look.conversation.as_deref()), (Some(next[1]), Some("schedule-look")));
    hands.advance(HOUR);
    assert_eq!(ran(&mut client, "look", 2).next_at, Some(next[2]));
    let said: Vec<String> =
        client.messages_in("a", "schedule-look").into_iter().map(|message| message.content).collect();
    assert_eq!(said, ["This is look.", "Done.", "This is look.", "Done."]);
    assert!(client.messages("a").is_empty(), "main is left alone");
    let of_look = wait_until("the events", DEADLINE, || {
        let events = client.events(0).into_iter().filter(|event| event.data["name"] == "look");
        Some(events.collect::<Vec<_>>()).filter(|events| events.len() == 4)
    });
    let kinds: Vec<EventType> = of_look.iter().map(|event| event.kind).collect();
    let both = [EventType::ScheduleStarted, EventType::ScheduleFinished];
    assert_eq!(kinds, [both, both].concat());
    assert_eq!((&of_look[1].data["reply"], &of_look[1].data["outcome"]), (&"Done.".into(), &"ok".into()));
}

#[test]
fn a_single_run_is_done_and_its_name_is_free_again() {
    let (_server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    add(&mut client, once("remind", MINUTE * 20));
    hands.advance(MINUTE * 20);
    let done = ran(&mut client, "remind", 1);
    assert_eq!((done.state, done.next_at), (ScheduleState::Done, None));
    hands.advance(HOUR);
    add(&mut client, once("remind", MINUTE));
    assert_eq!(listed(&mut client).len(), 1);
    hands.advance(MINUTE);
    ran(&mut client, "remind", 1);
}

#[test]
fn while_a_run_is_under_way_one_more_is_kept_or_none() {
    let (server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    server.anthropic().queue(Response::text(["A long"]).gate("late").then_text(" look."));
    add(&mut client, every("look", HOUR));
    hands.advance(HOUR);
    server.wait_for_gate("late");
    for hour in 1..=3 {
        hands.advance(HOUR);
        let_the_timer_look(&mut client, &hands, &format!("sentinel-{hour}"));
    }
    let look = find(&mut client, "look");
    assert_eq!((look.runs.len(), look.pending_at), (0, Some(time("2026-03-02T07:00:00Z"))));
    server.open_gate("late");
    let due: Vec<_> = ran(&mut client, "look", 2).runs.into_iter().map(|run| run.due_at).collect();
    assert_eq!(due, [time("2026-03-02T10:00:00Z"), time("2026-03-02T07:00:00Z")]);
    assert_eq!(sent(&mut client, "schedule-look").len(), 2);
}

#[test]
fn a_paused_schedule_waits_and_one_that_is_run_by_hand_runs_besides() {
    let (_server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    add(&mut client, every("look", HOUR));
    let (agent, name) = (Some("a".to_owned()), "look".to_owned());
    let pause = PauseParams { agent: agent.clone(), name: name.clone() };
    assert!(client.call::<Pause>(&pause).expect("schedule.pause").changed);
    assert!(!client.call::<Pause>(&pause).expect("schedule.pause").changed);
    hands.advance(HOUR * 3);
    let_the_timer_look(&mut client, &hands, "sentinel");
    let look = find(&mut client, "look");
    assert_eq!((look.state, look.next_at, look.runs.len()), (ScheduleState::Paused, None, 0));
    let run = RunParams { agent: agent.clone(), name: name.clone() };
    client.call::<Run>(&run).expect("schedule.run");
    assert_eq!(ran(&mut client, "look", 1).runs[0].due_at, time("2026-03-02T09:01:00Z"));
    let resume = ResumeParams { agent: agent.clone(), name: name.clone() };
    let resumed = client.call::<Resume>(&resume).expect("schedule.resume");
    assert_eq!((resumed.changed, resumed.schedule.next_at), (true, Some(time("2026-03-02T10:00:00Z"))));
    hands.advance(HOUR - MINUTE);
    ran(&mut client, "look", 2);
    client.call::<Remove>(&RemoveParams { agent, name }).expect("schedule.remove");
    hands.advance(HOUR);
    let_the_timer_look(&mut client, &hands, "later");
    assert_eq!(sent(&mut client, "schedule-look").len(), 2);
}

#[test]
fn a_clock_that_is_set_runs_nothing_twice() {
    let (_server, home, hands) = start("2026-03-02T06:59:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    add(&mut client, super::cron("daily", "0 7 * * *", "UTC"));
    hands.advance(MINUTE);
    ran(&mut client, "daily", 1);
    hands.shift_time_of_day(SignedDuration::from_mins(-30));
    hands.advance(MINUTE * 35);
    let_the_timer_look(&mut client, &hands, "sentinel");
    assert_eq!(find(&mut client, "daily").runs.len(), 1, "07:00 came again");
    // Set forward beyond the next time: it runs once, when the timer looks the next time.
    hands.shift_time_of_day(SignedDuration::from_hours(30));
    hands.advance(MINUTE);
    ran(&mut client, "daily", 2);
    hands.shift_time_of_day(SignedDuration::from_hours(-30));
    hands.advance(HOUR * 10);
    let_the_timer_look(&mut client, &hands, "another");
    assert_eq!(find(&mut client, "daily").runs.len(), 2);
}

#[test]
fn a_run_that_fails_is_recorded_with_the_reason() {
    let (server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    server.anthropic().queue(Response::error(400, "{\"error\":{\"message\":\"no such thing\"}}"));
    add(&mut client, every("look", HOUR));
    hands.advance(HOUR);
    let run = ran(&mut client, "look", 1).runs.remove(0);
    assert_eq!(run.outcome, RunOutcome::Failed);
    assert!(run.error.is_some_and(|error| error.contains("no such thing")) && run.turn_id.is_some());
    let failed = wait_until("the event", DEADLINE, || {
        client.events(0).into_iter().find(|event| event.kind == EventType::ScheduleFinished)
    });
    assert_eq!(failed.data["outcome"], "failed");
    hands.advance(HOUR);
    assert_eq!(ran(&mut client, "look", 2).runs[0].outcome, RunOutcome::Ok, "the next one runs");
}
