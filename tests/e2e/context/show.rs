//! `context show` and what an agent says of its context.

use chorus_proto::methods::agent::{Show as ShowAgent, ShowParams as ShowAgentParams};
use chorus_proto::methods::context::{Show, ShowParams, ShowResult};
use chorus_proto::{AgentState, Client, Message};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;

use crate::home;

fn show(client: &mut Client, params: ShowParams) -> ShowResult<Message> {
    client.call::<Show>(&ShowParams { agent: Some("a".into()), ..params }).expect("shown")
}

#[test]
fn an_idle_agent_shows_an_empty_context() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let shown = show(&mut client, ShowParams::default());
    assert_eq!((shown.messages.len(), shown.context.is_none(), shown.next), (0, true, None));
    let agent = client.call::<ShowAgent>(&ShowAgentParams { name: Some("a".into()) }).expect("an agent").agent;
    assert_eq!(agent.state, AgentState::Idle);
}

#[test]
fn the_last_messages_and_any_page_can_be_asked_for() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for n in 0..10 {
        client.append("a", &n.to_string());
    }
    let mut texts = |params| {
        let shown = show(&mut client, params);
        (shown.messages.into_iter().map(|m| m.content).collect::<Vec<_>>().join(" "), shown.next)
    };
    assert_eq!(texts(ShowParams { last: Some(3), ..Default::default() }), ("7 8 9".into(), None));
    assert_eq!(texts(ShowParams { last: Some(0), ..Default::default() }).0, "");
    assert_eq!(texts(ShowParams { last: Some(99), ..Default::default() }).0, "0 1 2 3 4 5 6 7 8 9");
    assert_eq!(texts(ShowParams { offset: Some(4), limit: Some(3), ..Default::default() }), ("4 5 6".into(), Some(7)));
    assert_eq!(texts(ShowParams { offset: Some(8), limit: Some(5), ..Default::default() }), ("8 9".into(), None));
    assert_eq!(texts(ShowParams { offset: Some(10), ..Default::default() }), (String::new(), None));
}

#[test]
fn the_numbers_of_a_context_follow_what_happens() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "12345678");
    client.append("a", "1234");
    let mut context = || show(&mut client, ShowParams::default()).context.expect("a live context");
    let first = context();
    assert_eq!((first.messages, first.token_estimate, first.unsaved), (2, 3, 2));
    assert!(first.parent_id.is_none() && first.idle_deadline_at.is_some());
    assert!(first.last_activity_at >= first.started_at);
    let again = context();
    assert_eq!(again.last_activity_at, first.last_activity_at, "reading is no activity");
    daemon.client().save("a", "");
    assert_eq!(context().unsaved, 0);
    daemon.client().append("a", "x");
    assert_eq!((context().messages, context().unsaved), (3, 1));
}
