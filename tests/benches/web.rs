//! Bench: pages of `chorusctl web` with 10,000 agents, and of conversations of 100,000 messages, over the same requests to the socket alone.

use std::time::Duration;

use chorus_proto::Client;
use chorus_proto::methods::context::{History, HistoryParams, Show, ShowParams};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_tests::bulk_data::{create_agents, fill_context};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::http_client::exchange;
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, Home, InteractiveCommand, home};

const LIVE: usize = 100;
const MESSAGES: usize = 100_000;
const ROUNDS: usize = 100;
/// A page is two to four requests and their HTML.
const TARGET: f64 = 6.0;

/// The running command with a browser that is signed in.
struct Web {
    _running: InteractiveCommand,
    port: u16,
    /// The path that all pages are below.
    prefix: String,
    cookie: String,
}

impl Web {
    fn start(home: &Home) -> Self {
        let mut command = home.command(home.bins.chorusctl);
        command.args(["web", "--no-open"]);
        let running = InteractiveCommand::on_terminal_of(&command, 200, 24);
        running.stdout.wait_for("Ctrl-C ends the pages");
        let text = running.stdout.text();
        let (port, path) =
            text.trim_start().strip_prefix("http://127.0.0.1:").and_then(|rest| rest.split_once('/')).expect("a link");
        let port = port.parse().expect("a port");
        let path = format!("/{}", path.lines().next().expect("a line").trim());
        let opened = exchange(port, request(port, &path, "").as_bytes()).expect("an answer");
        let cookie =
            opened.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a cookie").to_owned();
        let prefix = path.split_once("/open?").expect("the path of the link").0.to_owned();
        Self { _running: running, port, prefix, cookie }
    }

    /// Returns how long a page takes.
    fn time(&self, path: &str) -> Duration {
        let request = request(self.port, &format!("{}{path}", self.prefix), &self.cookie);
        time(|| {
            let answer = exchange(self.port, request.as_bytes()).expect("an answer");
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        })
    }
}

fn request(port: u16, path: &str, cookie: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n")
}

fn status(client: &mut Client, limit: u64) {
    client.call::<Status>(&StatusParams { agent: None, limit: Some(limit) }).expect("status");
}

fn agent_count() -> usize {
    std::env::var("CHORUS_AGENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000)
}

fn main() {
    let agents = agent_count();
    let home = home!();
    create_agents(&home, agents);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for n in 0..LIVE {
        client.append(&format!("agent-{n}"), "hello");
    }
    fill_context(&mut client, "long", MESSAGES);
    let session = client.save("long", "Long").header.id;
    let web = Web::start(&home);
    use_realtime_scheduler();
    let mut other = daemon.client();
    print_report(measure_paired(
        format!("first page, {agents} agents"),
        TARGET,
        ROUNDS,
        || {
            let history = HistoryParams { all_agents: true, limit: Some(25), keep_numbers: true, ..Default::default() };
            time(|| {
                status(&mut client, 20);
                client.call::<History>(&history).expect("context.history");
            })
        },
        || web.time("/"),
    ));
    for (name, offset) in [("first", 0), ("last", MESSAGES as u64 - 50)] {
        print_report(measure_paired(
            format!("{name} page of a session, {MESSAGES} messages"),
            TARGET,
            ROUNDS,
            || {
                let get = GetParams {
                    agent: Some("long".into()),
                    session: session.to_string(),
                    offset: Some(offset),
                    limit: Some(50),
                    ..Default::default()
                };
                time(|| drop(other.call::<Get>(&get).expect("session.get")))
            },
            || web.time(&format!("/session/{session}?from={}", offset + 1)),
        ));
    }
    let show = ShowParams { agent: Some("long".into()), last: Some(50), ..Default::default() };
    print_report(measure_paired(
        format!("live conversation, {MESSAGES} messages"),
        TARGET,
        ROUNDS,
        || time(|| drop(other.call::<Show>(&show).expect("context.show"))),
        || web.time("/agent/long/live/main"),
    ));
}
