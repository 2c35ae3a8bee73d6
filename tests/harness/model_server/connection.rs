//! Serves connections, one thread each.

use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::anthropic::AnthropicEncoder;
use super::http;
use super::openai::OpenaiEncoder;
use super::response::{Response, Step, StreamEnd};
use super::state::{RecordedRequest, ServerState, SharedState, TextEmbedder, WireFormat};
use super::strict_rules;

/// How often a waiting thread checks whether the client is still connected.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Encodes a response in a wire format.
pub trait StreamEncoder {
    fn encode_start(&mut self, model: &str, answer: &Response) -> String;
    fn encode_step(&mut self, step: &Step) -> String;
    fn encode_end(&mut self, answer: &Response) -> String;
}

/// Accepts connections until the server closes.
pub fn accept_connections(listener: &TcpListener, shared: &Arc<SharedState>) {
    for stream in listener.incoming().map_while(Result::ok) {
        if shared.state().closing {
            return;
        }
        let shared = shared.clone();
        std::thread::spawn(move || _ = serve_connection(stream, &shared));
    }
}

fn serve_connection(stream: TcpStream, shared: &SharedState) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let number = shared.update(|state| {
        state.connections += 1;
        state.connections
    });
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = ResponseWriter { stream, shared, drip: None, due: None };
    while let Some(request) = http::read_request(&mut reader, number)? {
        let wire = match request.path.split('?').next().unwrap_or_default() {
            "/v1/messages" => Some(WireFormat::Anthropic),
            "/v1/chat/completions" => Some(WireFormat::Openai),
            _ => None,
        };
        let model = request.body["model"].as_str().unwrap_or_default().to_owned();
        let (answer, list) = shared.update(|state| {
            let list = models_response(state, &request);
            let answer = wire.map(|wire| match strict_rules::check_request(wire, &request.body) {
                Err(why) if state.strict => refusal(&why),
                _ => state.next_response(wire, &request.body),
            });
            state.requests.push(request);
            (answer, list)
        });
        match (wire, answer) {
            (Some(wire), Some(answer)) => {
                if !out.write_response(wire, &model, &answer)? {
                    return Ok(());
                }
            }
            _ => http::write_response(&mut out.stream, list.0, "application/json", &[], &list.1)?,
        }
    }
    Ok(())
}

fn refusal(why: &str) -> Response {
    let error = json!({"error": {"type": "invalid_request_error", "message": why}});
    Response::error(400, &error.to_string())
}

/// Returns status and body of a list of models. Only Anthropic clients send the header `anthropic-version`.
fn models_response(state: &ServerState, request: &RecordedRequest) -> (u16, String) {
    let of_model = format!("{} {}", request.path, request.body["model"].as_str().unwrap_or_default());
    if let Some(told) = state.paths.get(of_model.trim_end()) {
        return (200, told.clone());
    }
    if let ("/v1/embeddings", Some(embedder)) = (request.path.as_str(), &state.embedder) {
        return embeddings_response(&request.body, embedder);
    }
    if !request.path.starts_with("/v1/models") {
        return (404, r#"{"error":{"type":"not_found_error","message":"no such path"}}"#.to_owned());
    }
    let anthropic = request.header("anthropic-version").is_some();
    if anthropic { state.anthropic_list.clone() } else { state.openai_list.clone() }
}

/// Returns status and body of the vectors of texts, by the rules of <https://platform.openai.com/docs/api-reference/embeddings/create>.
fn embeddings_response(body: &Value, embedder: &TextEmbedder) -> (u16, String) {
    let texts: Option<Vec<&str>> = body["input"].as_array().and_then(|texts| texts.iter().map(Value::as_str).collect());
    let texts = texts.filter(|texts| (1..=2048).contains(&texts.len()) && texts.iter().all(|text| !text.is_empty()));
    let Some(texts) = texts.filter(|_| body["model"].is_string()) else {
        let error =
            json!({"error": {"message": "'$.input' is invalid.", "type": "invalid_request_error", "code": null}});
        return (400, error.to_string());
    };
    let vector =
        |(index, text): (usize, &&str)| json!({"object": "embedding", "index": index, "embedding": (embedder.0)(text)});
    let data: Vec<Value> = texts.iter().enumerate().map(vector).collect();
    let usage = json!({"prompt_tokens": 8, "total_tokens": 8});
    (200, json!({"object": "list", "data": data, "model": body["model"], "usage": usage}).to_string())
}

/// Writes responses to one client.
struct ResponseWriter<'a> {
    stream: TcpStream,
    shared: &'a SharedState,
    drip: Option<Duration>,
    /// When the last `Pace` step was due.
    due: Option<Instant>,
}

impl ResponseWriter<'_> {
    /// Sends a response. Returns false if the connection is to be closed.
    fn write_response(&mut self, wire: WireFormat, model: &str, answer: &Response) -> io::Result<bool> {
        if let Some(body) = &answer.body {
            http::write_response(&mut self.stream, answer.status, "application/json", &answer.headers, body)?;
            return Ok(true);
        }
        let mut speak: Box<dyn StreamEncoder> = match wire {
            WireFormat::Anthropic => Box::new(AnthropicEncoder::default()),
            WireFormat::Openai => Box::new(OpenaiEncoder::default()),
        };
        (self.drip, self.due) = (None, None);
        http::start_chunked(&mut self.stream, &answer.headers)?;
        // Raw bytes are the whole stream. A script that begins with a wait waits after the HTTP headers.
        let mut begun = matches!(answer.steps.first(), Some(Step::Raw(_)));
        for step in &answer.steps {
            let speaks = !matches!(
                step,
                Step::Gate(_) | Step::Stall | Step::Pings(_) | Step::Pause(_) | Step::Pace(_) | Step::Drip(_)
            );
            if speaks && !std::mem::replace(&mut begun, true) {
                self.write(speak.encode_start(model, answer).as_bytes())?;
            }
            self.write_step(step, &mut *speak)?;
        }
        if !begun && answer.end == StreamEnd::Complete {
            self.write(speak.encode_start(model, answer).as_bytes())?;
        }
        match answer.end {
            StreamEnd::Disconnect => return Ok(false),
            StreamEnd::Complete => self.write(speak.encode_end(answer).as_bytes())?,
            StreamEnd::NoFinalEvent => {}
        }
        http::end_chunked(&mut self.stream)?;
        Ok(true)
    }

    fn write_step(&mut self, step: &Step, speak: &mut dyn StreamEncoder) -> io::Result<()> {
        match step {
            Step::Gate(name) => {
                self.shared.update(|state| _ = state.reached_gates.insert(name.clone()));
                self.wait_while_connected(None, |state| state.open_gates.contains(name))
            }
            Step::Stall => self.wait_while_connected(None, |_| false),
            Step::Pings(every) => loop {
                self.wait_while_connected(Some(*every), |_| false)?;
                // If the interval is zero, the failed write is the only sign that the client is gone.
                self.write(speak.encode_step(&Step::Ping).as_bytes())
                    .inspect_err(|_| self.shared.update(|state| state.hang_ups += 1))?;
            },
            Step::Pause(time) => self.wait_while_connected(Some(*time), |_| false),
            Step::Pace(every) => {
                let due = self.due.unwrap_or_else(Instant::now) + *every;
                self.due = Some(due);
                self.wait_while_connected(Some(due.saturating_duration_since(Instant::now())), |_| false)
            }
            Step::Drip(every) => {
                self.drip = Some(*every);
                Ok(())
            }
            Step::Raw(bytes) => self.write(bytes),
            said => self.write(speak.encode_step(said).as_bytes()),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(every) = self.drip else { return http::write_chunk(&mut self.stream, bytes) };
        for byte in bytes {
            self.wait_while_connected(Some(every), |_| false)?;
            http::write_chunk(&mut self.stream, &[*byte])?;
        }
        Ok(())
    }

    /// Waits until `until` is true or `time` has passed. Returns an error if the client disconnects or the server
    /// closes.
    fn wait_while_connected(&mut self, time: Option<Duration>, until: impl Fn(&ServerState) -> bool) -> io::Result<()> {
        let end = time.map(|time| Instant::now() + time);
        loop {
            let state = self.shared.state();
            if state.closing {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let left = end.map_or(POLL_INTERVAL, |end| end.saturating_duration_since(Instant::now()));
            if until(&state) || left.is_zero() {
                return Ok(());
            }
            self.shared.wait_for_change(state, left.min(POLL_INTERVAL));
            if self.is_client_gone() {
                self.shared.update(|state| state.hang_ups += 1);
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
    }

    fn is_client_gone(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let gone = match self.stream.peek(&mut [0]) {
            Ok(0) => true,
            Ok(_) => false,
            Err(e) => e.kind() != io::ErrorKind::WouldBlock,
        };
        self.stream.set_nonblocking(false).is_err() || gone
    }
}
