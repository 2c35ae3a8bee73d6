//! Answers those who ask, over HTTP.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chorus_engine::ops::Ops;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::families::Families;
use crate::gauges;
use crate::listener::Listener;

/// The limit on connections at the same time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 32;

/// Time within which a request must have arrived.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// The wait after a connection could not be accepted, for example because no file descriptor is free.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers requests until `stop`.
pub(crate) async fn serve(listener: Listener, ops: Arc<Ops>, families: Arc<Families>, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let is_port = listener.is_port();
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok(stream) = stream else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        let Ok(permit) = permits.clone().try_acquire_owned() else { continue };
        let (ops, families, stop) = (ops.clone(), families.clone(), stop.clone());
        chorus_runtime::spawn(async move {
            let _permit = permit;
            let answers = service_fn(move |request: Request<Incoming>| {
                let (ops, families) = (ops.clone(), families.clone());
                async move { Ok::<_, Infallible>(answer(&request, is_port, &ops, &families).await) }
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            let connection = server.serve_connection(TokioIo::new(stream), answers);
            tokio::select! {
                () = stop.cancelled() => {}
                // A client that speaks no HTTP, or closes early.
                _ = connection => {}
            }
        });
    }
}

async fn answer(
    request: &Request<Incoming>,
    is_port: bool,
    ops: &Arc<Ops>,
    families: &Families,
) -> Response<Full<Bytes>> {
    // A page of another site whose name was made to lead here must not read it.
    if is_port && !request.headers().get(HOST).is_some_and(is_loopback) {
        return response(StatusCode::FORBIDDEN, TEXT, "only localhost is served\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => match gauges::refresh(families, ops).await {
            Ok(()) => response(StatusCode::OK, OPEN_METRICS, families.encode()),
            Err(failure) => response(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{failure}\n")),
        },
        "/" => response(StatusCode::OK, TEXT, "chorusd\n\nThe metrics are at /metrics.\n"),
        _ => response(StatusCode::NOT_FOUND, TEXT, "not found; the metrics are at /metrics\n"),
    }
}

/// Returns true if a `Host` names this machine.
fn is_loopback(host: &HeaderValue) -> bool {
    let Some(authority) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn response(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
