//! What a token costs on its way from the model to who listens: one fast stream, the first token, and a hundred agents.

#[path = "floor/relay.rs"]
mod relay;

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use chorus_proto::methods::Method as _;
use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_proto::{CallError, Client};
use chorus_tests::chat::Chat as _;
use chorus_tests::many::agents;
use chorus_tests::measure::{median, report};
use chorus_tests::model_server::{Answer, ModelServer, Step};
use chorus_tests::process::cpu_time;
use chorus_tests::{Daemon, Home, home};
use serde_json::value::RawValue;

const TOKENS: u32 = 3_000;
const ROUNDS: u32 = 5;
const AGENTS: usize = 100;
const MEGABYTE: f64 = 1_048_576.0;

/// An answer of so many tokens, `every` so long.
fn paced(tokens: u32, every: Duration) -> Answer {
    (0..tokens).fold(Answer::empty(), |answer, _| answer.step(Step::Pace(every)).then("token "))
}

fn params(agent: &str, stream: bool) -> SendParams {
    SendParams { agent: Some(agent.into()), text: "Talk.".into(), stream, ..Default::default() }
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// A turn, counting the pieces that it comes in.
fn talk(client: &mut Client, params: &SendParams, pieces: &mut u32) -> SendResult {
    let counted = |_: &RawValue| -> Result<(), CallError> {
        *pieces += 1;
        Ok(())
    };
    let raw = client.call_streaming(Send::NAME, params, &mut { counted }).expect("a turn");
    serde_json::from_str(raw.get()).expect("a result")
}

/// Processor time a token at 1,000 tokens a second: of the least there is to do, and of the daemon.
fn one_stream(server: &ModelServer, daemon: &Daemon) {
    let mut client = daemon.client();
    client.set_timeout(None).expect("no time-out");
    let mut costs = [Vec::new(), Vec::new(), Vec::new()];
    let (mut pieces, begun) = (0, Instant::now());
    for _ in 0..ROUNDS {
        server.anthropic().answer(paced(TOKENS, Duration::from_millis(1)));
        costs[0].push(relay::relay(&server.url()));
        for (cost, stream) in costs[1..].iter_mut().zip([true, false]) {
            server.anthropic().answer(paced(TOKENS, Duration::from_millis(1)));
            let before = cpu_time(daemon.pid);
            let said = talk(&mut client, &params("agent-0", stream), &mut pieces);
            assert_eq!(said.reply.len(), TOKENS as usize * 6);
            cost.push(cpu_time(daemon.pid) - before);
        }
    }
    let rate = f64::from(TOKENS * 3 * ROUNDS) / begun.elapsed().as_secs_f64();
    let joined = 1.0 - f64::from(pieces) / f64::from(TOKENS * ROUNDS);
    report(format_args!("at {rate:.0} tokens/s, {:.1} % of them joined to the one before:", joined * 100.0));
    let each = |time: &Duration| time.as_secs_f64() * 1e6 / f64::from(TOKENS);
    for (cost, name) in
        costs.into_iter().zip(["floor: read one socket, write another", "one listener", "nobody listening"])
    {
        let (least, most) = (cost.iter().min().map_or(0.0, each), cost.iter().max().map_or(0.0, each));
        let middle = each(&median(cost));
        let verdict = if name == "one listener" { verdict(middle <= 50.0) } else { "" };
        report(format_args!("{name}: {middle:.1} us of processor a token ({least:.1} to {most:.1})  {verdict}"));
    }
}

/// From the moment the model's server lets its first token go to the moment `chorusctl send` has printed it.
fn first_token(server: &ModelServer, home: &Home) {
    let times = (0..21).map(|n| {
        let gate = format!("gate-{n}");
        server.anthropic().answer(Answer::empty().gate(&gate).then("token ").gate(&format!("end-{n}")));
        let mut command = home.command(home.bins.chorusctl);
        let mut child = command
            .args(["--agent", "agent-0", "send", "Talk."])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("chorusctl");
        server.reached(&gate);
        let begun = Instant::now();
        server.open(&gate);
        let mut byte = [0];
        child.stdout.as_mut().expect("its output").read_exact(&mut byte).expect("a byte");
        let took = begun.elapsed();
        server.open(&format!("end-{n}"));
        assert!(child.wait().expect("its end").success());
        took
    });
    let took = median(times.collect());
    report(format_args!(
        "first token printed after {took:.2?}  target <= 5 ms  {}",
        verdict(took <= Duration::from_millis(5))
    ));
}

/// A hundred agents that stream 50 tokens a second each.
fn many(server: &ModelServer, daemon: &Daemon) {
    let seconds = 8;
    server.anthropic().always(paced(50 * seconds, Duration::from_millis(20)));
    let (before, begun) = (cpu_time(daemon.pid), Instant::now());
    let rss = std::thread::scope(|scope| {
        for n in 0..AGENTS {
            let mut client = daemon.client();
            client.set_timeout(None).expect("no time-out");
            scope.spawn(move || {
                talk(&mut client, &params(&format!("agent-{n}"), true), &mut 0);
            });
        }
        let half = begun + Duration::from_secs(u64::from(seconds) / 2);
        chorus_tests::wait_until("half of it", Duration::from_secs(60), || {
            (Instant::now() >= half).then(|| daemon.rss())
        })
    });
    let share = (cpu_time(daemon.pid) - before).as_secs_f64() / begun.elapsed().as_secs_f64();
    let rss = rss as f64 / MEGABYTE;
    report(format_args!(
        "{AGENTS} agents at 50 tokens/s: {:.0} % of a core, RSS {rss:.0} MB  targets < 100 %, 150 MB  {}",
        share * 100.0,
        verdict(share < 1.0 && rss < 150.0)
    ));
}

fn main() {
    let (server, home) = (ModelServer::start(), home!());
    agents(&home, AGENTS);
    let daemon = Daemon::start_with(&home, &server.config_toml());
    // The first call builds the client.
    server.anthropic().say(["Hello."]);
    daemon.client().call::<Send>(&params("agent-0", false)).expect("a turn");
    assert_eq!(daemon.client().texts("agent-0").len(), 2);
    one_stream(&server, &daemon);
    first_token(&server, &home);
    many(&server, &daemon);
}
