//! Bench: a turn without tools, over the bare request to the same model server: what Chorus adds.

use std::time::Duration;

use chorus_proto::Client;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::model_server::{BareClient, ModelServer, Response, Step};
use chorus_tests::{Daemon, home};

/// How long the model takes until its answer, with the number of turns. Half a second is an assumption: about what a hosted
/// model needs for a short answer.
const DELAYS: [(Duration, usize); 2] = [(Duration::ZERO, 300), (Duration::from_millis(500), 31)];

fn turn(client: &mut Client) {
    let params = SendParams { agent: Some("a".into()), text: "Talk.".into(), ..Default::default() };
    assert_eq!(client.call::<Send>(&params).expect("a turn").reply, "Hello.");
}

fn main() {
    let (server, home) = (ModelServer::start(), home!());
    use_realtime_scheduler();
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    client.init("a");
    let mut bare = BareClient::connect(&server);
    for (delay, rounds) in DELAYS {
        server.anthropic().set_fallback(Response::empty().step(Step::Pause(delay)).then_text("Hello."));
        let name = format!("a turn, over a bare request that takes {delay:?}");
        // Without any delay there is no goal: a model that takes no time does not exist.
        let target = if delay.is_zero() { f64::INFINITY } else { 1.02 };
        let measured = measure_paired(name, target, rounds, || time(|| bare.request()), || time(|| turn(&mut client)));
        print_report(&measured);
        let Measurement { floor, ours, .. } = measured;
        print_report(format_args!("  Chorus adds {:.2?}", ours.saturating_sub(floor)));
    }
}
