//! Bench: memory and processor time of an idle daemon with 10,000 agents, 2,000 of them with a live context.

use std::time::{Duration, Instant};

use chorus_proto::{NewMessage, Role};
use chorus_tests::bulk_data::create_agents;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::print_report;
use chorus_tests::process::{cpu_time, wait_for_calm_second};
use chorus_tests::{Daemon, home, wait_until};

const AGENTS: usize = 10_000;
const LIVE: usize = 2000;
const MESSAGES: usize = 50;
const IDLE_TIME: Duration = Duration::from_secs(20);
/// Longer than it takes until untouched contexts are evicted from memory.
const EVICTION_TIME: Duration = Duration::from_secs(75);
/// Resident memory in megabytes beyond the text.
const TARGET_MEGABYTES: f64 = 20.0;
const MEGABYTE: f64 = 1_048_576.0;

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn wait_for_time(time: Duration) {
    let begun = Instant::now();
    wait_until("the time to pass", time * 2, || (begun.elapsed() >= time).then_some(()));
}

fn main() {
    let home = home!();
    create_agents(&home, AGENTS);
    drop(Daemon::start(&home));
    let daemon = Daemon::start(&home);
    print_report(format_args!(
        "{AGENTS} agents, none live, just started: RSS {:.1} MB",
        daemon.rss() as f64 / MEGABYTE
    ));
    wait_for_time(IDLE_TIME);
    let rss = daemon.rss() as f64 / MEGABYTE;
    let verdict_none = verdict(rss <= TARGET_MEGABYTES);
    print_report(format_args!("{AGENTS} agents, none live, idle: RSS {rss:.1} MB  {verdict_none}"));
    let mut client = daemon.client();
    let mut text = 0;
    for n in 0..LIVE {
        let message = |m| NewMessage::text(Role::User, format!("message {m} {}", "word ".repeat(60)));
        let messages: Vec<_> = (0..MESSAGES).map(message).collect();
        text += messages.iter().map(|message| message.content.len()).sum::<usize>();
        client.append_all(&format!("agent-{n}"), messages);
    }
    // The catalog sync after a start reads every agent; wait until it is done.
    wait_for_calm_second(daemon.pid);
    let text = text as f64 / MEGABYTE;
    let rss = || daemon.rss() as f64 / MEGABYTE;
    let beyond = |when: &str| {
        let (rss, verdict) = (rss(), verdict(rss() - text <= TARGET_MEGABYTES));
        let beyond = rss - text;
        print_report(format_args!(
            "{LIVE} live, {when}: RSS {rss:.1} MB, text {text:.1} MB, beyond it {beyond:.1} MB  {verdict}"
        ));
    };
    beyond("just talked to");
    wait_for_time(EVICTION_TIME);
    beyond("left alone for a while");
    let before = cpu_time(daemon.pid);
    wait_for_time(IDLE_TIME);
    let share = (cpu_time(daemon.pid) - before).as_secs_f64() / IDLE_TIME.as_secs_f64();
    print_report(format_args!("idle: {:.3} % of a core  target < 0.5 %  {}", share * 100.0, verdict(share < 0.005)));
    drop(client);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    print_report(format_args!(
        "after a restart, before anybody touches them: RSS {:.1} MB",
        daemon.rss() as f64 / MEGABYTE
    ));
}
