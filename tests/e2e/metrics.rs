//! The figures for Prometheus, read with the parser of its own Python client.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use chorus_proto::EventType;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::free_port::free_port;
use chorus_tests::{DEADLINE, Daemon, Fixture, Home, wait_until};

use crate::approvals::queue_calls;
use crate::home;

/// Prints each sample on a line, as the parser understands it.
const PARSE: &str = "\
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    for sample in family.samples:
        labels = ','.join(f'{name}={value}' for name, value in sorted(sample.labels.items()))
        print(f'{sample.name}{{{labels}}} {sample.value}')
";

/// Sends a request and returns the status line and the body.
fn ask(mut stream: impl Read + Write, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
    (head.lines().next().expect("a line").to_owned(), body.to_owned())
}

fn get(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Returns all samples, by name and labels.
pub fn samples(home: &Home, socket: &Path) -> BTreeMap<String, f64> {
    let stream = wait_until("the socket", DEADLINE, || UnixStream::connect(socket).ok());
    let (status, body) = ask(stream, &get("/metrics", "x"));
    assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
    let mut python = home.command("/usr/bin/python3");
    python.args(["-c", PARSE]);
    let parsed = run_command(python, body.as_bytes()).expect_success();
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        (name.to_owned(), value.parse().expect("a number"))
    };
    parsed.lines().map(sample).collect()
}

#[test]
fn what_happens_is_counted() {
    let home = home();
    let socket = home.temp_dir().join("metrics.sock");
    let tables = format!(
        "[metrics]\nlisten = \"unix:{}\"\n\
         [prices.\"anthropic/claude-test\"]\ninput = 3\noutput = 15\n\
         [permissions.free]\nallow = [\".*\"]\n",
        socket.display()
    );
    let fixture = Fixture::builder(home).models().tables(&tables).start();
    fixture.create_agent("a", Some("free"));
    fixture.create_agent("a-name-nobody-else-should-read", None);
    queue_calls(&fixture, 2);
    fixture.send("a", "Which are there?").expect("a reply");
    fixture.client().save("a", "Models");
    fixture.wait_for_events(EventType::ContextSaved, 1);
    let found = wait_until("the counters", DEADLINE, || {
        let found = samples(&fixture.home, &socket);
        (found.get("chorus_saves_total{trigger=manual_save}") == Some(&1.0)).then_some(found)
    });
    let due = [
        ("chorus_turns_total{outcome=finished}", 1.0),
        ("chorus_turn_duration_seconds_count{}", 1.0),
        ("chorus_running_turns{}", 0.0),
        ("chorus_tool_calls_total{outcome=ok,tool=list_models}", 2.0),
        ("chorus_tool_duration_seconds_count{}", 2.0),
        ("chorus_model_calls_total{model=anthropic/claude-test,purpose=turn}", 2.0),
        ("chorus_events_total{type=turn.started}", 1.0),
        ("chorus_agents{state=active}", 1.0),
        ("chorus_agents{state=idle}", 1.0),
        ("chorus_pending_approvals{}", 0.0),
        ("chorus_discord_connected{}", 0.0),
        ("chorus_metrics_missed_events_total{}", 0.0),
    ];
    for (name, value) in due {
        assert_eq!(found.get(name), Some(&value), "{name} in {found:#?}");
    }
    let some = [
        "chorus_model_tokens_total{kind=input,model=anthropic/claude-test}",
        "chorus_model_cost_usd_total{model=anthropic/claude-test}",
        "chorus_model_call_duration_seconds_sum{model=anthropic/claude-test}",
        "chorus_messages_appended_total{}",
        "chorus_database_size_bytes{file=live.db}",
        "process_resident_memory_bytes{}",
        "process_start_time_seconds{}",
    ];
    for name in some {
        assert!(found.get(name).is_some_and(|value| *value > 0.0), "{name} in {found:#?}");
    }
    let version = format!("chorus_build_info{{version={}}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(found.get(&version), Some(&1.0), "{found:#?}");
    assert!(!found.keys().any(|name| name.contains("nobody-else")), "the name of an agent: {found:#?}");
    let mode = std::fs::metadata(&socket).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_port_serves_this_machine_only() {
    let home = home();
    let port = free_port();
    let daemon = Daemon::start_with(&home, &format!("[metrics]\nlisten = \"127.0.0.1:{port}\"\n"));
    let ask_port = |request: &str| {
        let stream = wait_until("the port", DEADLINE, || TcpStream::connect(("127.0.0.1", port)).ok());
        ask(stream, request)
    };
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "[::1]".to_owned()] {
        let (status, body) = ask_port(&get("/metrics", &host));
        assert!(status.contains(" 200 ") && body.ends_with("# EOF\n"), "{host}: {status}");
    }
    // A name of somebody else that leads here.
    for host in ["rebound.example", "127.0.0.1.example:80", ""] {
        let (status, body) = ask_port(&get("/metrics", host));
        assert!(status.contains(" 403 ") && !body.contains("chorus_"), "{host}: {status}");
    }
    let localhost = format!("localhost:{port}");
    assert!(ask_port(&get("/metricsx", &localhost)).0.contains(" 404 "));
    assert!(ask_port(&get("/", &localhost)).1.contains("/metrics"));
    let post = format!("POST /metrics HTTP/1.1\r\nHost: {localhost}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert!(ask_port(&post).0.contains(" 405 "));
    // Connections that say nothing keep nobody from an answer for long, and the daemon from nothing.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("connected")).collect();
    daemon.client().init("a");
    drop(silent);
    wait_until("an answer", DEADLINE, || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(get("/metrics", &localhost).as_bytes()).ok()?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok()?;
        reply.contains(" 200 ").then_some(())
    });
}

#[test]
fn a_taken_port_keeps_the_daemon_from_nothing() {
    let home = home();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    let daemon = Daemon::start_with(&home, &format!("[metrics]\nlisten = \"{address}\"\n"));
    daemon.client().init("a");
    let log = home.path.join("log/chorusd.log");
    wait_until("the log", DEADLINE, || {
        let log = std::fs::read_to_string(&log).ok()?;
        log.contains("cannot listen for those who read metrics").then_some(())
    });
    drop(taken);
    wait_until("the port", DEADLINE, || TcpStream::connect(address).ok());
}

#[test]
fn other_machines_are_refused_before_anything_is_made() {
    let home = home();
    home.write_config("[metrics]\nlisten = \"0.0.0.0:9464\"\n");
    let output = home.command(home.bins.chorusd).output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("metrics.listen") && said.contains("loopback"), "{said}");
    assert!(!home.path.join("db").exists(), "something was made");
    let output = chorusctl(&home, ["status"]);
    output.expect_failure(4);
}
