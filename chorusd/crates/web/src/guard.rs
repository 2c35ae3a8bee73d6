//! The checks that each request has to pass before a page sees it, and the headers of each answer.
//!
//! The path has to begin with the prefix (`prefix.rs`), without which nothing is answered.
//!
//! `Host` has to be ours, so that a name that an attacker lets point to loopback (DNS rebinding) is refused. What changes something, and the
//! stream of events, need a proof that our own page asks: its `Origin`, or the browser's word that it is the same origin. Everything but
//! the link and the static files needs the cookie of a session.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::app::App;
use crate::failure_page::{plain_page, refusal};
use crate::prefix;
use crate::routes::{EVENTS, OPEN, SCRIPT, STYLE};
use crate::strangers::Visitor;

/// The limit on a message in bytes.
pub(crate) const MAX_TEXT: usize = 1 << 20;
pub(crate) const TOO_LONG: &str = "a message has to be shorter than 1 MiB\n";
/// The longest body: a message whose characters are all encoded for the form, and its other fields.
const MAX_BODY: usize = 3 * MAX_TEXT + (4 << 10);
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const HEADERS: [(HeaderName, &str); 8] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// It is not below the prefix.
    Place,
    Host,
    Origin,
    SignedOut,
}

/// Checks a request, lets its page answer, and adds the headers.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let visitor = request.extensions().get::<Arc<Visitor>>().cloned();
    let mut response = match check(&app, &request) {
        Ok(is_known) => match limit_body(request).await {
            Ok(request) => {
                if let Some(visitor) = visitor.filter(|_| is_known) {
                    visitor.know();
                }
                next.run(request).await
            }
            Err(refused) => *refused,
        },
        Err(refusal) => refuse(refusal),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refuse(refused: Refusal) -> Response {
    match refused {
        // Somebody may look for what listens here.
        Refusal::Place => StatusCode::NOT_FOUND.into_response(),
        Refusal::Host => refusal(
            StatusCode::MISDIRECTED_REQUEST,
            "This page has another address",
            "Use the address that chorusctl web printed.",
        ),
        Refusal::Origin => refusal(
            StatusCode::FORBIDDEN,
            "Another page sent this request",
            "Only the pages of chorusctl web can do that.",
        ),
        Refusal::SignedOut => plain_page(
            StatusCode::UNAUTHORIZED,
            "Not signed in",
            "Open the link that chorusctl web printed. If it was used already, run chorusctl web again.",
        ),
    }
}

/// Reads the body, which is short, before anything happens.
async fn limit_body(request: Request) -> Result<Request, Box<Response>> {
    let (parts, body) = request.into_parts();
    let too_long = |status, text| Box::new((status, text).into_response());
    let length =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > MAX_BODY) {
        return Err(too_long(StatusCode::PAYLOAD_TOO_LARGE, TOO_LONG));
    }
    let read = tokio::time::timeout(BODY_TIME, to_bytes(body, MAX_BODY)).await;
    let bytes = read
        .map_err(|_| too_long(StatusCode::REQUEST_TIMEOUT, "the request took too long\n"))?
        .map_err(|_| too_long(StatusCode::PAYLOAD_TOO_LARGE, TOO_LONG))?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// Returns true if the request has the cookie of a session.
fn check(app: &App, request: &Request) -> Result<bool, Refusal> {
    let headers = request.headers();
    let path = prefix::strip(request.uri().path()).ok_or(Refusal::Place)?;
    let host = single(headers, &header::HOST).filter(|host| is_our_host(host, app.port));
    if host.is_none() || request.uri().authority().is_some() {
        return Err(Refusal::Host);
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let needs_own_origin = changes || path == EVENTS;
    if needs_own_origin && !is_own_origin(headers, app.port) || !needs_own_origin && is_embedded_elsewhere(headers) {
        return Err(Refusal::Origin);
    }
    let is_public = !changes && matches!(path, OPEN | SCRIPT | STYLE);
    let mut cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let is_known = app.login.is_signed_in(&mut cookies);
    if is_public || is_known { Ok(is_known) } else { Err(Refusal::SignedOut) }
}

/// Returns the value of a header that is there once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn is_our_host(host: &str, port: u16) -> bool {
    let name = match host.strip_suffix(&format!(":{port}")) {
        Some(name) => name,
        // Browsers leave out the port of HTTP.
        None if port == 80 => host,
        None => return false,
    };
    matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}

/// Returns true if a browser says that our own page asks. Forms of our pages have the origin `null`, because they send no referrer.
fn is_own_origin(headers: &HeaderMap, port: u16) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin") {
        return false;
    }
    match single(headers, &header::ORIGIN) {
        Some("null") => site.is_some(),
        Some(origin) => origin.strip_prefix("http://").is_some_and(|host| is_our_host(host, port)),
        None => site.is_some() && !headers.contains_key(header::ORIGIN),
    }
}

/// Returns true if another page loads this as a part of itself. Links to it may be followed: without the cookie, nothing is shown.
fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    match value("sec-fetch-site") {
        None | Some("same-origin" | "none") => false,
        Some(_) => value("sec-fetch-mode") != Some("navigate") || value("sec-fetch-dest") != Some("document"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_loopback_with_the_port_is_our_host() {
        for host in ["127.0.0.1:4000", "localhost:4000", "[::1]:4000"] {
            assert!(is_our_host(host, 4000), "{host}");
        }
        for host in
            ["", "localhost", "localhost:4001", "evil.example:4000", "127.0.0.1.evil.example:4000", "a@localhost:4000"]
        {
            assert!(!is_our_host(host, 4000), "{host}");
        }
        assert!(is_our_host("localhost", 80));
    }

    #[test]
    fn an_origin_is_ours_if_the_browser_says_so() {
        let own = |pairs| is_own_origin(&headers(pairs), 4000);
        assert!(own(&[("origin", "http://127.0.0.1:4000")]));
        assert!(own(&[("origin", "null"), ("sec-fetch-site", "same-origin")]));
        assert!(own(&[("sec-fetch-site", "same-origin")]));
        assert!(!own(&[]));
        assert!(!own(&[("origin", "null")]));
        assert!(!own(&[("origin", "http://127.0.0.1:4001")]));
        assert!(!own(&[("origin", "https://127.0.0.1:4000")]));
        assert!(!own(&[("origin", "http://evil.example")]));
        assert!(!own(&[("sec-fetch-site", "same-site")]));
        assert!(!own(&[("origin", "http://127.0.0.1:4000"), ("sec-fetch-site", "cross-site")]));
    }

    #[test]
    fn other_pages_may_link_here_but_not_embed() {
        let elsewhere = |site, mode, dest| {
            is_embedded_elsewhere(&headers(&[
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ]))
        };
        assert!(!elsewhere("cross-site", "navigate", "document"));
        assert!(elsewhere("cross-site", "navigate", "iframe"));
        assert!(elsewhere("same-site", "no-cors", "script"));
        assert!(!elsewhere("same-origin", "no-cors", "script"));
        assert!(!is_embedded_elsewhere(&HeaderMap::new()));
    }
}
