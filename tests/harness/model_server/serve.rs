//! Connections: one thread each.

use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::answer::{Answer, End, Step};
use super::anthropic::Anthropic;
use super::http;
use super::legal;
use super::openai::Openai;
use super::state::{Recorded, Shared, State, Wire};

/// How often whoever waits looks whether the client is still there.
const LOOK: Duration = Duration::from_millis(5);

/// A wire format, spoken.
pub trait Speak {
    fn begin(&mut self, model: &str, answer: &Answer) -> String;
    fn step(&mut self, step: &Step) -> String;
    fn end(&mut self, answer: &Answer) -> String;
}

/// Takes connections until the server closes.
pub fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming().map_while(Result::ok) {
        if shared.state().closing {
            return;
        }
        let shared = shared.clone();
        std::thread::spawn(move || _ = connection(stream, &shared));
    }
}

fn connection(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let number = shared.change(|state| {
        state.connections += 1;
        state.connections
    });
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = Out { stream, shared, drip: None, due: None };
    while let Some(request) = http::read(&mut reader, number)? {
        let wire = match request.path.split('?').next().unwrap_or_default() {
            "/v1/messages" => Some(Wire::Anthropic),
            "/v1/chat/completions" => Some(Wire::Openai),
            _ => None,
        };
        let model = request.body["model"].as_str().unwrap_or_default().to_owned();
        let (answer, list) = shared.change(|state| {
            let list = list(state, &request);
            let answer = wire.map(|wire| match legal::check(wire, &request.body) {
                Err(why) if state.strict => refused(&why),
                _ => state.next(wire, &request.body),
            });
            state.requests.push(request);
            (answer, list)
        });
        match (wire, answer) {
            (Some(wire), Some(answer)) => {
                if !out.answer(wire, &model, &answer)? {
                    return Ok(());
                }
            }
            _ => http::write_whole(&mut out.stream, list.0, "application/json", &[], &list.1)?,
        }
    }
    Ok(())
}

fn refused(why: &str) -> Answer {
    let error = json!({"error": {"type": "invalid_request_error", "message": why}});
    Answer::error(400, &error.to_string())
}

/// What a request for a list gets: the two kinds of clients are told apart by a header that only one of them sends.
fn list(state: &State, request: &Recorded) -> (u16, String) {
    let of_model = format!("{} {}", request.path, request.body["model"].as_str().unwrap_or_default());
    if let Some(told) = state.paths.get(of_model.trim_end()) {
        return (200, told.clone());
    }
    if !request.path.starts_with("/v1/models") {
        return (404, r#"{"error":{"type":"not_found_error","message":"no such path"}}"#.to_owned());
    }
    let anthropic = request.header("anthropic-version").is_some();
    if anthropic { state.anthropic_list.clone() } else { state.openai_list.clone() }
}

/// The way back to one client.
struct Out<'a> {
    stream: TcpStream,
    shared: &'a Shared,
    drip: Option<Duration>,
    /// When the last step of a pace was due.
    due: Option<Instant>,
}

impl Out<'_> {
    /// Answers; false where the connection is to be closed.
    fn answer(&mut self, wire: Wire, model: &str, answer: &Answer) -> io::Result<bool> {
        if let Some(body) = &answer.body {
            http::write_whole(&mut self.stream, answer.status, "application/json", &answer.headers, body)?;
            return Ok(true);
        }
        let mut speak: Box<dyn Speak> = match wire {
            Wire::Anthropic => Box::new(Anthropic::default()),
            Wire::Openai => Box::new(Openai::default()),
        };
        (self.drip, self.due) = (None, None);
        http::begin_stream(&mut self.stream, &answer.headers)?;
        // Raw bytes are the whole stream; a script that begins with a pause stalls after the headers.
        let mut begun = matches!(answer.steps.first(), Some(Step::Raw(_)));
        for step in &answer.steps {
            let speaks = !matches!(
                step,
                Step::Gate(_) | Step::Stall | Step::Pings(_) | Step::Pause(_) | Step::Pace(_) | Step::Drip(_)
            );
            if speaks && !std::mem::replace(&mut begun, true) {
                self.write(speak.begin(model, answer).as_bytes())?;
            }
            self.step(step, &mut *speak)?;
        }
        if !begun && answer.end == End::Whole {
            self.write(speak.begin(model, answer).as_bytes())?;
        }
        match answer.end {
            End::Cut => return Ok(false),
            End::Whole => self.write(speak.end(answer).as_bytes())?,
            End::NoMarker => {}
        }
        http::end_stream(&mut self.stream)?;
        Ok(true)
    }

    fn step(&mut self, step: &Step, speak: &mut dyn Speak) -> io::Result<()> {
        match step {
            Step::Gate(name) => {
                self.shared.change(|state| _ = state.reached.insert(name.clone()));
                self.wait(None, |state| state.open.contains(name))
            }
            Step::Stall => self.wait(None, |_| false),
            Step::Pings(every) => loop {
                self.wait(Some(*every), |_| false)?;
                // Without a wait in between, this is where it is seen that nobody is there.
                self.write(speak.step(&Step::Ping).as_bytes())
                    .inspect_err(|_| self.shared.change(|state| state.hung_up += 1))?;
            },
            Step::Pause(time) => self.wait(Some(*time), |_| false),
            Step::Pace(every) => {
                let due = self.due.unwrap_or_else(Instant::now) + *every;
                self.due = Some(due);
                self.wait(Some(due.saturating_duration_since(Instant::now())), |_| false)
            }
            Step::Drip(every) => {
                self.drip = Some(*every);
                Ok(())
            }
            Step::Raw(bytes) => self.write(bytes),
            said => self.write(speak.step(said).as_bytes()),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(every) = self.drip else { return http::write_piece(&mut self.stream, bytes) };
        for byte in bytes {
            self.wait(Some(every), |_| false)?;
            http::write_piece(&mut self.stream, &[*byte])?;
        }
        Ok(())
    }

    /// Waits for `until`, or so long; an error where the client hangs up first, or the server closes.
    fn wait(&mut self, time: Option<Duration>, until: impl Fn(&State) -> bool) -> io::Result<()> {
        let end = time.map(|time| Instant::now() + time);
        loop {
            let state = self.shared.state();
            if state.closing {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
            if until(&state) || left.is_zero() {
                return Ok(());
            }
            self.shared.wait(state, left.min(LOOK));
            if self.has_gone() {
                self.shared.change(|state| state.hung_up += 1);
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
    }

    fn has_gone(&self) -> bool {
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
