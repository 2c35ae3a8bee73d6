//! Bench: the cost of a token from the model to the client, for one fast stream, the first token, and 100 agents.

#[path = "floor/relay.rs"]
mod relay;

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use chorus_proto::methods::Method as _;
use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_proto::{CallError, Client};
use chorus_tests::bulk_data::create_agents;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{median, print_report};
use chorus_tests::model_server::{ModelServer, Response, Step};
use chorus_tests::process::cpu_time;
use chorus_tests::{Daemon, Home, home};
use serde_json::value::RawValue;

const TOKENS: u32 = 3_000;
const ROUNDS: u32 = 5;
const AGENTS: usize = 100;
const MEGABYTE: f64 = 1_048_576.0;

/// Creates a response of `tokens` tokens, one per interval `every`.
fn paced_response(tokens: u32, every: Duration) -> Response {
    (0..tokens).fold(Response::empty(), |answer, _| answer.step(Step::Pace(every)).then_text("token "))
}

fn params(agent: &str, stream: bool) -> SendParams {
    SendParams { agent: Some(agent.into()), text: "Talk.".into(), stream, ..Default::default() }
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// Runs a turn and counts the pieces in which it arrives.
fn run_turn(client: &mut Client, params: &SendParams, pieces: &mut u32) -> SendResult {
    let counted = |_: &RawValue| -> Result<(), CallError> {
        *pieces += 1;
        Ok(())
    };
    let raw = client.call_streaming(Send::NAME, params, &mut { counted }).expect("a turn");
    serde_json::from_str(raw.get()).expect("a result")
}

/// Measures the processor time per token at 1,000 tokens per second, of the floor and of the daemon.
fn one_stream(server: &ModelServer, daemon: &Daemon) {
    let mut client = daemon.client();
    client.set_timeout(None).expect("no time-out");
    let mut costs = [Vec::new(), Vec::new(), Vec::new()];
    let (mut pieces, begun) = (0, Instant::now());
    for _ in 0..ROUNDS {
        server.anthropic().queue(paced_response(TOKENS, Duration::from_millis(1)));
        costs[0].push(relay::relay_response(&server.url()));
        for (cost, stream) in costs[1..].iter_mut().zip([true, false]) {
            server.anthropic().queue(paced_response(TOKENS, Duration::from_millis(1)));
            let before = cpu_time(daemon.pid);
            let said = run_turn(&mut client, &params("agent-0", stream), &mut pieces);
            assert_eq!(said.reply.len(), TOKENS as usize * 6);
            cost.push(cpu_time(daemon.pid) - before);
        }
    }
    let rate = f64::from(TOKENS * 3 * ROUNDS) / begun.elapsed().as_secs_f64();
    let joined = 1.0 - f64::from(pieces) / f64::from(TOKENS * ROUNDS);
    print_report(format_args!("at {rate:.0} tokens/s, {:.1} % of them joined to the one before:", joined * 100.0));
    let each = |time: &Duration| time.as_secs_f64() * 1e6 / f64::from(TOKENS);
    for (cost, name) in
        costs.into_iter().zip(["floor: read one socket, write another", "one listener", "nobody listening"])
    {
        let (least, most) = (cost.iter().min().map_or(0.0, each), cost.iter().max().map_or(0.0, each));
        let middle = each(&median(cost));
        let verdict = if name == "one listener" { verdict(middle <= 50.0) } else { "" };
        print_report(format_args!("{name}: {middle:.1} us of processor a token ({least:.1} to {most:.1})  {verdict}"));
    }
}

/// Measures the time from the model server's first token until `chorusctl send` has printed it.
fn first_token(server: &ModelServer, home: &Home) {
    let times = (0..21).map(|n| {
        let gate = format!("gate-{n}");
        server.anthropic().queue(Response::empty().gate(&gate).then_text("token ").gate(&format!("end-{n}")));
        let mut command = home.command(home.bins.chorusctl);
        let mut child = command
            .args(["--agent", "agent-0", "send", "Talk."])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("chorusctl");
        server.wait_for_gate(&gate);
        let begun = Instant::now();
        server.open_gate(&gate);
        let mut byte = [0];
        child.stdout.as_mut().expect("its output").read_exact(&mut byte).expect("a byte");
        let took = begun.elapsed();
        server.open_gate(&format!("end-{n}"));
        assert!(child.wait().expect("its end").success());
        took
    });
    let took = median(times.collect());
    print_report(format_args!(
        "first token printed after {took:.2?}  target <= 5 ms  {}",
        verdict(took <= Duration::from_millis(5))
    ));
}

/// Measures 100 agents that stream 50 tokens per second each.
fn hundred_agents(server: &ModelServer, daemon: &Daemon) {
    let seconds = 8;
    server.anthropic().set_fallback(paced_response(50 * seconds, Duration::from_millis(20)));
    let (before, begun) = (cpu_time(daemon.pid), Instant::now());
    let rss = std::thread::scope(|scope| {
        for n in 0..AGENTS {
            let mut client = daemon.client();
            client.set_timeout(None).expect("no time-out");
            scope.spawn(move || {
                run_turn(&mut client, &params(&format!("agent-{n}"), true), &mut 0);
            });
        }
        let half = begun + Duration::from_secs(u64::from(seconds) / 2);
        chorus_tests::wait_until("half of it", Duration::from_secs(60), || {
            (Instant::now() >= half).then(|| daemon.rss())
        })
    });
    let share = (cpu_time(daemon.pid) - before).as_secs_f64() / begun.elapsed().as_secs_f64();
    let rss = rss as f64 / MEGABYTE;
    print_report(format_args!(
        "{AGENTS} agents at 50 tokens/s: {:.0} % of a core, RSS {rss:.0} MB  targets < 100 %, 150 MB  {}",
        share * 100.0,
        verdict(share < 1.0 && rss < 150.0)
    ));
}

fn main() {
    let (server, home) = (ModelServer::start(), home!());
    create_agents(&home, AGENTS);
    let daemon = Daemon::start_with(&home, &server.config_toml());
    // The first call creates the HTTP client; do it before the measurement.
    server.anthropic().queue_text(["Hello."]);
    daemon.client().call::<Send>(&params("agent-0", false)).expect("a turn");
    assert_eq!(daemon.client().message_texts("agent-0").len(), 2);
    one_stream(&server, &daemon);
    first_token(&server, &home);
    hundred_agents(&server, &daemon);
}
