//! A collector of traces: takes what a daemon sends over HTTP, answers as the test wants, and reads the spans with the official
//! parser of Python.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chorus_base::sync::Mutex;
use serde_json::Value;

use crate::ctl::run_command;
use crate::skip::skip;
use crate::{DEADLINE, wait_until};

/// A Python that has the package `opentelemetry-proto`; `.ci/run` installs it.
const PYTHON: &str = "/usr/local/lib/chorus-ci-otlp/bin/python3";

/// Prints each span on a line, as the parser understands it.
const PARSE: &str = "\
import base64, json, sys
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

def plain(value):
    kind = value.WhichOneof('value')
    if kind == 'array_value':
        return [plain(entry) for entry in value.array_value.values]
    return getattr(value, kind)

def plain_all(attributes):
    assert len({entry.key for entry in attributes}) == len(attributes), attributes
    return {entry.key: plain(entry.value) for entry in attributes}

for line in sys.stdin:
    request = ExportTraceServiceRequest.FromString(base64.b64decode(line))
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                print(json.dumps({
                    'trace': span.trace_id.hex(), 'id': span.span_id.hex(), 'parent': span.parent_span_id.hex(),
                    'name': span.name, 'kind': span.SpanKind.Name(span.kind), 'start': span.start_time_unix_nano,
                    'end': span.end_time_unix_nano, 'attributes': plain_all(span.attributes),
                    'status': span.status.StatusCode.Name(span.status.code), 'message': span.status.message,
                    'resource': plain_all(resource.resource.attributes), 'scope': scope.scope.name,
                }))
";

/// The behaviour of the collector with a request.
#[derive(Debug, Clone)]
pub enum CollectorAnswer {
    /// Answers with this status and these header lines, each with its end.
    Status(u16, String),
    /// Answers that it has the spans, except so many.
    Reject(u8),
    /// Never answers.
    Hang,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct CollectorRequest {
    /// The lines before the body.
    pub head: String,
    pub body: Vec<u8>,
    /// True if it was answered with success.
    pub is_accepted: bool,
}

#[derive(Debug, Default)]
struct State {
    answers: VecDeque<CollectorAnswer>,
    fallback: Option<CollectorAnswer>,
    requests: Vec<CollectorRequest>,
    hanging: Vec<TcpStream>,
}

/// A collector on a port of this machine. It accepts everything unless the test says otherwise.
#[derive(Debug)]
pub struct OtlpCollector {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl OtlpCollector {
    /// Starts a collector; skips the test if the parser is not installed.
    #[must_use]
    pub fn start() -> Option<Self> {
        let is_installed = Command::new(PYTHON).args(["-c", "import opentelemetry.proto.trace"]).status();
        if !is_installed.is_ok_and(|status| status.success()) {
            skip("opentelemetry-proto is not installed here");
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Some(Self { port, state })
    }

    /// Returns a table for config.toml that names this collector, with more keys.
    #[must_use]
    pub fn config(&self, keys: &str) -> String {
        format!("[traces]\nendpoint = \"http://127.0.0.1:{}\"\n{keys}\n", self.port)
    }

    /// Sets the answer to the next request that has none yet.
    pub fn queue(&self, answer: CollectorAnswer) {
        self.state.lock().answers.push_back(answer);
    }

    /// Sets the answer to all requests without a queued one; `None` accepts them.
    pub fn set_fallback(&self, answer: Option<CollectorAnswer>) {
        self.state.lock().fallback = answer;
    }

    /// Returns all requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<CollectorRequest> {
        self.state.lock().requests.clone()
    }

    /// Returns the spans that were accepted, in the order in which they arrived.
    #[must_use]
    pub fn spans(&self) -> Vec<Value> {
        let accepted = self.requests().into_iter().filter(|request| request.is_accepted);
        let lines: String = accepted.map(|request| BASE64_STANDARD.encode(request.body) + "\n").collect();
        let mut python = Command::new(PYTHON);
        python.args(["-c", PARSE]);
        let parsed = run_command(python, lines.as_bytes()).expect_success();
        parsed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Waits until a span of this name was accepted, and returns all of them.
    #[must_use]
    pub fn wait_for_span(&self, name: &str) -> Vec<Value> {
        let mut known = 0;
        wait_until(&format!("the span {name}"), DEADLINE, || {
            let count = self.requests().len();
            if count == known {
                return None;
            }
            known = count;
            Some(self.spans()).filter(|spans| spans.iter().any(|span| span["name"] == name))
        })
    }

    /// Waits for so many requests.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize) -> Vec<CollectorRequest> {
        wait_until("requests to the collector", DEADLINE, || Some(self.requests()).filter(|found| found.len() >= count))
    }
}

/// Answers the requests of a connection until it ends.
fn serve(stream: TcpStream, state: &Mutex<State>) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read_request(&mut reader) {
        let mut held = state.lock();
        let answer = held.answers.pop_front().or_else(|| held.fallback.clone());
        let (status, headers, content) = match &answer {
            None => (200, String::new(), Vec::new()),
            Some(CollectorAnswer::Status(status, headers)) => (*status, headers.clone(), Vec::new()),
            // The field partial_success with its fields rejected_spans and error_message.
            Some(CollectorAnswer::Reject(spans)) => {
                (200, String::new(), vec![10, 9, 8, *spans, 18, 5, b't', b'o', b'o', b' ', b'x'])
            }
            Some(CollectorAnswer::Hang) => (0, String::new(), Vec::new()),
        };
        held.requests.push(CollectorRequest { head, body, is_accepted: status == 200 });
        if status == 0 {
            held.hanging.push(writer);
            return;
        }
        drop(held);
        let reply = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n{headers}\r\n", content.len());
        if writer.write_all(&[reply.as_bytes(), &content].concat()).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}
