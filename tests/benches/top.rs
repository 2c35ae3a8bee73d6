//! Bench: `chorusctl top` with 10,000 agents: time of a frame, also of an open conversation, and processor time while nothing happens and while one agent works.

use std::time::{Duration, Instant};

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::bulk_data::create_agents;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::print_report;
use chorus_tests::process::{cpu_time, wait_for_calm_second};
use chorus_tests::{Daemon, InteractiveCommand, home, wait_until};

const AGENTS: usize = 10_000;
const LIVE: usize = 100;
const FRAMES: u32 = 1000;
/// Messages of the conversation that is open.
const MESSAGES: usize = 1000;
const STAND_TIME: Duration = Duration::from_secs(30);
const TARGET_FRAME: Duration = Duration::from_millis(5);
/// Of a core.
const TARGET_SHARE: f64 = 0.01;
/// Messages a second in one conversation.
const RATE: u64 = 5;

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// Measures the share of a core that the screen takes while `work` is called `RATE` times a second.
fn share_of_core(pid: u32, mut work: impl FnMut()) -> f64 {
    let (before, start, mut done) = (cpu_time(pid), Instant::now(), 0);
    wait_until("the time to pass", STAND_TIME * 2, || {
        if start.elapsed().as_millis() as u64 * RATE / 1000 > done {
            done += 1;
            work();
        }
        (start.elapsed() >= STAND_TIME).then_some(())
    });
    (cpu_time(pid) - before).as_secs_f64() / start.elapsed().as_secs_f64()
}

fn main() {
    let home = home!();
    create_agents(&home, AGENTS);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for n in 0..LIVE {
        client.append(&format!("agent-{n}"), "hello");
    }
    let status = client.call::<Status>(&StatusParams::default()).expect("status");
    let status = serde_json::to_string(&status).expect("JSON");
    for size in [(80, 24), (200, 60)] {
        let [mean, longest, update] = chorus_top::bench::measure_frames(&status, size, FRAMES);
        print_report(format_args!(
            "{AGENTS} agents, {}x{}: frame {mean:.2?} (longest {longest:.2?}), new state of an agent {update:.2?}  \
             target <= 5 ms  {}",
            size.0,
            size.1,
            verdict(longest <= TARGET_FRAME && update <= TARGET_FRAME)
        ));
    }
    for size in [(80, 24), (200, 60)] {
        let [mean, longest] = chorus_top::bench::measure_conversation(MESSAGES, size, FRAMES);
        print_report(format_args!(
            "a conversation with {MESSAGES} messages whose reply grows, {}x{}: frame {mean:.2?} (longest {longest:.2?})  \
             target <= 5 ms  {}",
            size.0,
            size.1,
            verdict(longest <= TARGET_FRAME)
        ));
    }
    wait_for_calm_second(daemon.pid);
    let mut command = home.command(home.bins.chorusctl);
    command.arg("top");
    let running = InteractiveCommand::on_terminal_of(&command, 200, 60);
    running.stdout.wait_for("agent-0");
    let pid = running.pid();
    wait_for_calm_second(pid);
    for (name, works) in [("while it stands", false), ("with 5 messages a second", true)] {
        let daemon_before = cpu_time(daemon.pid);
        let share = share_of_core(pid, || {
            if works {
                client.append("agent-0", "more");
            }
        });
        let of_daemon = (cpu_time(daemon.pid) - daemon_before).as_secs_f64() / STAND_TIME.as_secs_f64();
        let target = if works { "" } else { verdict(share <= TARGET_SHARE) };
        print_report(format_args!(
            "{AGENTS} agents, {LIVE} live, {name}: {:.2} % of a core (the daemon {:.2} %)  target <= 1 %  {target}",
            share * 100.0,
            of_daemon * 100.0
        ));
    }
}
