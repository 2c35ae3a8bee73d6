//! The REST side: requests over HTTP/1.1, faults first, then what Discord would do.

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
use super::form;
use super::messages::File;
use super::rest;
use super::state::{Shared, State};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub method: String,
    /// Below `/api/v10`, without its query.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub authorization: Option<String>,
    pub user_agent: String,
    /// The body as JSON; null where it is none.
    pub body: Value,
    pub files: Vec<File>,
    pub at: std::time::Instant,
}

impl Recorded {
    /// A parameter of the query.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}

/// What is sent back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

impl Answer {
    pub fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: body.to_string().into() }
    }

    /// 204.
    pub fn nothing() -> Self {
        Self { status: 204, headers: Vec::new(), body: Bytes::new() }
    }
}

/// Takes connections for good.
pub async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection(stream, shared.clone()));
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    _ = stream.set_nodelay(true);
    let service = service_fn(|request| serve(request, &shared));
    // The other end may go whenever it likes.
    _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The answer; an error breaks the connection.
async fn serve(request: Request<Incoming>, shared: &Shared) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let broken = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| broken())?.to_bytes();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let asked = form::read(head.method.as_str(), &head.uri.to_string(), &header, &body);
    let fault = shared.change(|state| {
        state.requests.push(asked.clone());
        if state.refusing {
            return Some(Fault::Reset);
        }
        state.faults.iter_mut().find_map(|laid| laid.take(&asked.method, &asked.path))
    });
    let early = match &fault {
        Some(Fault::Reset) => return Err(broken()),
        Some(Fault::Slow(time)) => {
            sleep_until(Instant::now() + *time).await;
            None
        }
        Some(Fault::Gate(name)) => {
            shared.change(|state| _ = state.reached.insert((*name).to_owned()));
            shared.when(|state| state.open.contains(*name).then_some(())).await;
            None
        }
        Some(fault) => instead(fault),
        None => None,
    };
    let answer = early.unwrap_or_else(|| shared.change(|state| answer(state, &asked)));
    if matches!(fault, Some(Fault::Lost)) {
        return Err(broken());
    }
    Ok(response(answer).unwrap_or_else(|never| match never {}))
}

fn answer(state: &mut State, asked: &Recorded) -> Answer {
    let (limited, headers) = state.buckets.take(&asked.method, &asked.path);
    let mut answer = match limited {
        Some(after) => limited_for(after, false),
        None => match rest::answer(state, asked) {
            Ok(answer) => answer,
            Err(refusal) => {
                if refusal.mistake {
                    let body = refusal.body();
                    state.violation(format!("{} {}: {body} for {}", asked.method, asked.path, asked.body));
                }
                Answer::json(refusal.status, &refusal.body())
            }
        },
    };
    answer.headers.extend(headers);
    answer
}

fn limited_for(after: std::time::Duration, global: bool) -> Answer {
    let seconds = after.as_secs_f64();
    let body = json!({"message": "You are being rate limited.", "retry_after": seconds, "global": global});
    let mut answer = Answer::json(429, &body);
    // The header is in whole seconds, the body in parts of them.
    answer.headers.push(("retry-after", format!("{}", seconds.ceil())));
    answer.headers.push(("x-ratelimit-scope", if global { "global" } else { "user" }.to_owned()));
    if global {
        answer.headers.push(("x-ratelimit-global", "true".to_owned()));
    }
    answer
}

/// The answer that a fault gives in the place of Discord's.
fn instead(fault: &Fault) -> Option<Answer> {
    let html = |status, text: &str| Answer {
        status,
        headers: vec![("content-type", "text/html; charset=utf-8".to_owned())],
        body: format!("<!DOCTYPE html><html><body>{text}</body></html>").into(),
    };
    Some(match fault {
        Fault::Status(status) => html(*status, "upstream connect error"),
        Fault::RateLimit { after, global } => limited_for(*after, *global),
        Fault::Html403 => html(403, "Access denied"),
        Fault::Refuse(status, code, message) => Answer::json(*status, &json!({"message": message, "code": code})),
        Fault::Reset | Fault::Lost | Fault::Slow(_) | Fault::Gate(_) => return None,
    })
}

fn response(answer: Answer) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = hyper::StatusCode::from_u16(answer.status).unwrap_or(hyper::StatusCode::IM_A_TEAPOT);
    for (name, value) in answer.headers {
        if let Ok(value) = hyper::header::HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}
