//! Bench: 1,000 conversations of one agent live at once, after 100 others: their memory, an append in one of them compared
//! with an append to an agent that has only one, and a start compared with one with as many agents.

use std::ops::Range;
use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, Home, home, wait_until};

const CONVERSATIONS: usize = 1000;
/// Conversations before those, with whose eviction the daemon has done everything once.
const FIRST: usize = 100;
const MESSAGES: usize = 50;
const ROUNDS: usize = 21;
/// Longer than it takes until untouched contexts are evicted from memory.
const EVICTION_TIME: Duration = Duration::from_secs(75);
const TARGET_KILOBYTES: f64 = 4.0;

fn messages() -> Vec<NewMessage> {
    (0..MESSAGES).map(|n| NewMessage::text(Role::User, format!("message {n} {}", "word ".repeat(60)))).collect()
}

fn append(client: &mut Client, agent: &str, conversation: Option<String>, messages: Vec<NewMessage>) {
    let params = AppendParams { agent: Some(agent.into()), conversation, messages, ..Default::default() };
    client.call::<Append>(&params).expect("appended");
}

fn name(n: usize) -> String {
    format!("conversation-{n}")
}

fn leave_alone() {
    let begun = Instant::now();
    wait_until("the eviction", EVICTION_TIME * 2, || (begun.elapsed() >= EVICTION_TIME).then_some(()));
}

fn time_start(home: &Home) -> Duration {
    let mut daemon = None;
    let took = time(|| daemon = Some(Daemon::start(home)));
    daemon.expect("a daemon").kill9();
    took
}

fn main() {
    let (home, agents) = (home!(), home!());
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["many", "one"] {
        client.init(agent);
        append(&mut client, agent, None, messages());
    }
    for (key, value) in [("max_conversations", FIRST + CONVERSATIONS + 1), ("concurrent_turns", 8)] {
        let params = ConfigParams { name: "many".into(), key: Some(key.into()), value: Some(value.into()) };
        client.call::<Config>(&params).expect("agent.config");
    }
    let start = daemon.rss() as f64;
    let mut talk = |conversations: Range<usize>| {
        conversations.fold(0, |text, n| {
            let params = NewParams { agent: Some("many".into()), name: name(n), ..Default::default() };
            client.call::<New>(&params).expect("conversations.new");
            let messages = messages();
            let length = messages.iter().map(|message| message.content.len()).sum::<usize>();
            append(&mut client, "many", Some(name(n)), messages);
            text + length
        })
    };
    talk(0..FIRST);
    leave_alone();
    let before = daemon.rss() as f64;
    let once = (before - start) / 1024.0 / 1024.0;
    print_report(format_args!("the first {FIRST} conversations, and what comes once: {once:.1} MB"));
    let text = talk(FIRST..FIRST + CONVERSATIONS);
    let report = |when: &str, text: usize| {
        let each = (daemon.rss() as f64 - before - text as f64) / CONVERSATIONS as f64 / 1024.0;
        let verdict = if each <= TARGET_KILOBYTES { "met" } else { "MISSED" };
        print_report(format_args!(
            "{CONVERSATIONS} more conversations of one agent, {when}: {each:.1} KB each beyond their text  target 4.0  {verdict}"
        ));
    };
    report("just talked to", text);
    leave_alone();
    report("left alone", 0);
    use_realtime_scheduler();
    let one_message = || vec![NewMessage::text(Role::User, "x".repeat(1024))];
    let mut alone = daemon.client();
    let appended = measure_paired(
        "append in one of 1,100 conversations, over alone",
        1.1,
        1000,
        || time(|| append(&mut alone, "one", None, one_message())),
        || time(|| append(&mut client, "many", Some(name(7)), one_message())),
    );
    print_report(appended);
    daemon.kill9();
    let daemon = Daemon::start(&agents);
    let mut client = daemon.client();
    for n in 0..=FIRST + CONVERSATIONS {
        client.init(&name(n));
        append(&mut client, &name(n), None, messages());
    }
    daemon.kill9();
    let started = measure_paired(
        "start, 1,100 conversations over 1,100 agents",
        1.1,
        ROUNDS,
        || time_start(&agents),
        || time_start(&home),
    );
    print_report(&started);
    let daemon = Daemon::start(&home);
    let shown = daemon.client().messages_in("many", &name(CONVERSATIONS - 1));
    assert_eq!(shown.len(), MESSAGES, "and they are all there");
}
