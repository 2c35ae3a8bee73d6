//! Filters, and whose conversations are searched.

use chorus_proto::methods::search::SearchParams;
use chorus_proto::{NewMessage, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;

use super::{find, find_with, query, search, wait_until_complete};
use crate::home;

#[test]
fn filters_narrow_what_is_found() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["api", "web"] {
        client.init(agent);
        client.append_all(
            agent,
            vec![
                NewMessage::text(Role::User, format!("which kangaroo of {agent}?")),
                NewMessage::text(Role::Assistant, "the red kangaroo"),
            ],
        );
    }
    wait_until_complete(&mut client);
    let count = |client: &mut chorus_proto::Client, params: SearchParams| search(client, &params).hits.len();
    let all = || query("kangaroo");
    let everywhere = find_with(&mut client, &all());
    let agents: std::collections::BTreeSet<_> = everywhere.iter().map(|hit| hit.agent_name.clone()).collect();
    assert_eq!(agents.into_iter().collect::<Vec<_>>(), ["api", "web"]);
    let of = |agent: &str| SearchParams { agent: Some(agent.into()), all_agents: false, ..all() };
    assert!(search(&mut client, &of("web")).hits.iter().all(|hit| hit.agent_name == "web"));
    let by_role = SearchParams { role: Some(Role::Assistant), ..of("web") };
    let replies = search(&mut client, &by_role).hits;
    assert_eq!((replies.len(), replies[0].message, replies[0].speaker.as_deref()), (1, Some(2), Some("web")));
    assert_eq!(count(&mut client, SearchParams { since: Some("1h".into()), ..of("web") }), 1);
    assert_eq!(count(&mut client, SearchParams { until: Some("1h".into()), ..of("web") }), 0);
    assert_eq!(count(&mut client, SearchParams { tag: Some("zoo".into()), ..all() }), 0);
    for source in ["cli", "discord", "agent", "import", "Discord", "claude-code", "chatgpt"] {
        assert_eq!(count(&mut client, SearchParams { source: Some(source.into()), ..all() }), 0, "{source}");
    }
    let run = |args: &[&str]| chorus_tests::ctl::chorusctl(&home, args.iter().copied()).expect_success();
    run(&["--agent", "api", "save", "marsupials", "--tag", "zoo"]);
    let tagged = find_with(&mut client, &SearchParams { tag: Some("zoo".into()), ..all() });
    assert!(tagged.iter().all(|hit| hit.session.is_some() && hit.agent_name == "api"), "{tagged:?}");
}

#[test]
fn titles_and_tags_are_found_without_a_message() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "hello");
    let session = client.save("api", "Migrating the thermostat");
    let hits = find(&mut client, "thermostat");
    assert_eq!(hits[0].session.as_ref().map(|found| found.id), Some(session.header.id));
    assert_eq!((hits[0].message, hits[0].title.as_deref()), (None, Some("Migrating the thermostat")));
}

#[test]
fn a_time_in_the_query_counts_and_filters_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "we feed the kangaroo at noon");
    let mut time_of = |text: &str| {
        let hits = find_with(&mut client, &SearchParams { explain: true, ..query(text) });
        let parts = hits[0].parts.iter().filter(|part| part.name == "time");
        parts.map(|part| part.value).sum::<f64>()
    };
    assert!(time_of("kangaroo this week") > 0.0);
    assert!(time_of("kangaroo in 2001") < 1e-6);
    assert!(time_of("kangaroo") < 1e-6);
}
