//! Agents with schedules that are renamed, destroyed and restored.

use chorus_proto::methods::agent::{Config, ConfigParams, Destroy, DestroyParams};
use chorus_proto::methods::conversations::{Rename, RenameParams};
use chorus_proto::methods::schedule::{List, ListParams};
use chorus_proto::methods::trash::{Empty, EmptyParams, Restore, RestoreParams};
use chorus_tests::InProcessDaemon;

use super::{HOUR, MINUTE, add, create_agent, every, find, let_the_timer_look, listed, ran, sent, start};

#[test]
fn a_schedule_follows_its_agent_and_its_conversation_by_other_names() {
    let (_server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "b");
    let rename = ConfigParams { name: "b".into(), key: Some("name".into()), value: Some("a".into()) };
    add(&mut client, chorus_proto::methods::schedule::AddParams { agent: Some("b".into()), ..every("look", HOUR) });
    client.call::<Config>(&rename).expect("agent.config");
    hands.advance(HOUR);
    assert_eq!(ran(&mut client, "look", 1).agent, "a");
    let params = RenameParams { agent: Some("a".into()), conversation: "schedule-look".into(), name: "looks".into() };
    client.call::<Rename>(&params).expect("conversations.rename");
    hands.advance(HOUR);
    assert_eq!(ran(&mut client, "look", 2).conversation.as_deref(), Some("looks"));
    assert_eq!(sent(&mut client, "looks").len(), 2);
}

#[test]
fn a_destroyed_agent_runs_nothing_until_it_is_restored() {
    let (server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    for name in ["a", "other"] {
        create_agent(&mut client, name);
    }
    add(&mut client, every("look", HOUR));
    hands.advance(HOUR);
    ran(&mut client, "look", 1);
    let destroy = DestroyParams { name: "a".into(), keep_files: false, purge: false };
    client.call::<Destroy>(&destroy).expect("agent.destroy");
    let all = ListParams { all_agents: true, ..Default::default() };
    assert!(client.call::<List>(&all).expect("schedule.list").schedules.is_empty());
    let requests = server.requests().len();
    hands.advance(HOUR * 2 + MINUTE);
    let sentinel =
        chorus_proto::methods::schedule::AddParams { agent: Some("other".into()), ..super::once("sentinel", MINUTE) };
    add(&mut client, sentinel);
    hands.advance(MINUTE);
    assert_eq!(server.wait_for_requests(requests + 1).len(), requests + 1);
    client.call::<Restore>(&RestoreParams { id: "a".into() }).expect("trash.restore");
    assert_eq!(find(&mut client, "look").runs.len(), 1);
    hands.advance(HOUR);
    assert_eq!(ran(&mut client, "look", 2).runs.len(), 2);
}

#[test]
fn schedules_are_deleted_with_their_agent() {
    let (_server, home, hands) = start("2026-03-02T06:00:00Z");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    create_agent(&mut client, "a");
    add(&mut client, every("look", HOUR));
    client
        .call::<Destroy>(&DestroyParams { name: "a".into(), keep_files: false, purge: false })
        .expect("agent.destroy");
    client.call::<Empty>(&EmptyParams::default()).expect("trash.empty");
    create_agent(&mut client, "a");
    assert!(listed(&mut client).is_empty());
    let_the_timer_look(&mut client, &hands, "sentinel");
    assert_eq!(listed(&mut client).len(), 1);
}
