//! The REST API over HTTP/1.1: injected faults first, then what Discord would do.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

use super::faults::Fault;
use super::messages::File;
use super::request_parse;
use super::rest;
use super::state::{Shared, State};

/// A request as it was received.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    /// The path below `/api/v10`, without the query.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub authorization: Option<String>,
    pub user_agent: String,
    /// The body as JSON; null if it is no JSON.
    pub body: Value,
    pub files: Vec<File>,
    pub at: std::time::Instant,
}

impl RecordedRequest {
    /// Returns a parameter of the query.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}

/// A response.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

impl HttpResponse {
    pub fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: body.to_string().into() }
    }

    /// Returns an empty response with status 204.
    pub fn no_content() -> Self {
        Self { status: 204, headers: Vec::new(), body: Bytes::new() }
    }
}

/// Accepts connections for ever.
pub async fn accept_connections(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        chorus_runtime::spawn(serve_connection(stream, shared.clone()));
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<Shared>) {
    _ = stream.set_nodelay(true);
    let service = service_fn(|request| handle_request(request, &shared));
    // The client may disconnect at any time.
    _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Returns the response; an error resets the connection.
async fn handle_request(request: Request<Incoming>, shared: &Shared) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let broken = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| broken())?.to_bytes();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let asked = request_parse::parse_request(head.method.as_str(), &head.uri.to_string(), &header, &body);
    // Whoever has seen a request among those received finds it carried out, unless a fault holds it up.
    let (fault, done) = shared.change(|state| {
        state.requests.push(asked.clone());
        let fault = match state.is_refusing {
            true => Some(Fault::Reset),
            false => state.faults.iter_mut().find_map(|laid| laid.apply(&asked.method, &asked.path)),
        };
        let done = fault.is_none().then(|| respond(state, &asked));
        (fault, done)
    });
    let early = match &fault {
        Some(Fault::Reset) => return Err(broken()),
        Some(Fault::Delay(time)) => {
            sleep_until(Instant::now() + *time).await;
            None
        }
        Some(Fault::Gate(name)) => {
            shared.change(|state| _ = state.reached_gates.insert((*name).to_owned()));
            shared.wait_for(|state| state.open_gates.contains(*name).then_some(())).await;
            None
        }
        Some(fault) => fault_response(fault),
        None => done,
    };
    let answer = early.unwrap_or_else(|| shared.change(|state| respond(state, &asked)));
    if matches!(fault, Some(Fault::LoseResponse)) {
        return Err(broken());
    }
    Ok(to_hyper_response(answer).unwrap_or_else(|never| match never {}))
}

fn respond(state: &mut State, asked: &RecordedRequest) -> HttpResponse {
    let (limited, headers) = state.buckets.count_request(&asked.method, &asked.path);
    let mut answer = match limited {
        Some(after) => rate_limited(after, false),
        None => match rest::handle_request(state, asked) {
            Ok(answer) => answer,
            Err(refusal) => {
                if refusal.is_violation {
                    let body = refusal.to_json();
                    state.record_violation(format!("{} {}: {body} for {}", asked.method, asked.path, asked.body));
                }
                HttpResponse::json(refusal.status, &refusal.to_json())
            }
        },
    };
    answer.headers.extend(headers);
    answer
}

fn rate_limited(after: std::time::Duration, global: bool) -> HttpResponse {
    let seconds = after.as_secs_f64();
    let body = json!({"message": "You are being rate limited.", "retry_after": seconds, "global": global});
    let mut answer = HttpResponse::json(429, &body);
    // The header is in whole seconds, the body in fractions.
    answer.headers.push(("retry-after", format!("{}", seconds.ceil())));
    answer.headers.push(("x-ratelimit-scope", if global { "global" } else { "user" }.to_owned()));
    if global {
        answer.headers.push(("x-ratelimit-global", "true".to_owned()));
    }
    answer
}

/// Returns the response that a fault has instead of Discord's.
fn fault_response(fault: &Fault) -> Option<HttpResponse> {
    let html = |status, text: &str| HttpResponse {
        status,
        headers: vec![("content-type", "text/html; charset=utf-8".to_owned())],
        body: format!("<!DOCTYPE html><html><body>{text}</body></html>").into(),
    };
    Some(match fault {
        Fault::Status(status) => html(*status, "upstream connect error"),
        Fault::RateLimit { after, global } => rate_limited(*after, *global),
        Fault::Html403 => html(403, "Access denied"),
        Fault::Refuse(status, code, message) => HttpResponse::json(*status, &json!({"message": message, "code": code})),
        Fault::Reset | Fault::LoseResponse | Fault::Delay(_) | Fault::Gate(_) => return None,
    })
}

fn to_hyper_response(answer: HttpResponse) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = hyper::StatusCode::from_u16(answer.status).unwrap_or(hyper::StatusCode::IM_A_TEAPOT);
    for (name, value) in answer.headers {
        if let Ok(value) = hyper::header::HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}
