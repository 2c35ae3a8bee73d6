//! Pages that say what went wrong, and what to do.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chorus_daemon_client::Failure;
use chorus_proto::ErrorKind;
use maud::{Markup, html};

use crate::layout;
use crate::prefix::at;

/// The result of a page.
pub(crate) type PageResult = Result<Response, FailurePage>;

/// A failed request of a page, as the answer to the browser.
#[derive(Debug)]
pub(crate) struct FailurePage(Failure);

impl From<Failure> for FailurePage {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl IntoResponse for FailurePage {
    fn into_response(self) -> Response {
        let Self(failure) = self;
        let hint = failure.hint.as_deref().unwrap_or_default();
        plain_page(status_of(&failure), &layout::sentence(&failure.message), &layout::sentence(hint))
    }
}

fn status_of(failure: &Failure) -> StatusCode {
    match failure.kind {
        None | Some(ErrorKind::Stopping | ErrorKind::StorageUnavailable) => StatusCode::SERVICE_UNAVAILABLE,
        Some(
            ErrorKind::AgentNotFound
            | ErrorKind::ConversationNotFound
            | ErrorKind::SessionNotFound
            | ErrorKind::NotFound
            | ErrorKind::NoAgent,
        ) => StatusCode::NOT_FOUND,
        Some(ErrorKind::InvalidName | ErrorKind::InvalidParams | ErrorKind::Ambiguous) => StatusCode::BAD_REQUEST,
        Some(ErrorKind::Denied | ErrorKind::LimitReached) => StatusCode::FORBIDDEN,
        Some(ErrorKind::Conflict | ErrorKind::Expired | ErrorKind::AlreadyExists) => StatusCode::CONFLICT,
        Some(ErrorKind::Busy) => StatusCode::TOO_MANY_REQUESTS,
        Some(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Answers a failed action: our script shows the text, a browser without it the page.
pub(crate) fn action_failure(headers: &HeaderMap, failure: Failure) -> Response {
    if !is_script(headers) {
        return FailurePage(failure).into_response();
    }
    let hint = failure.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    (status_of(&failure), format!("{}{hint}", failure.message)).into_response()
}

/// Returns true if our script asks, which shows the answer itself.
pub(crate) fn is_script(headers: &HeaderMap) -> bool {
    headers.contains_key("x-chorus-script")
}

/// Returns a page with a heading and a sentence, without anything of the daemon.
pub(crate) fn plain_page(status: StatusCode, heading: &str, text: &str) -> Response {
    let page =
        layout::bare(heading, &html! { h1 { (heading) } p { (text) } p { a href=(at("/")) { "Conversations" } } });
    respond(status, page)
}

/// Returns a refusal, which somebody else's page may get: only text.
pub(crate) fn refusal(status: StatusCode, heading: &str, text: &str) -> Response {
    (status, format!("{heading}. {text}\n")).into_response()
}

/// Answers with HTML.
pub(crate) fn respond(status: StatusCode, page: Markup) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

pub(crate) fn page(page: Markup) -> Response {
    respond(StatusCode::OK, page)
}
