//! The link that was printed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use maud::html;
use serde::Deserialize;

use crate::app::App;
use crate::extract::QueryParams;
use crate::failure_page::{page, plain_page, refusal};
use crate::layout;
use crate::login::LinkUse;
use crate::prefix::at;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    #[serde(default)]
    token: String,
}

/// Exchanges the token for a cookie. The answer is a page that moves on: after a redirect from another site, the browser would not send
/// the cookie.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    method: Method,
    headers: HeaderMap,
    QueryParams(params): QueryParams<Params>,
) -> Response {
    let is_prefetch = ["sec-purpose", "purpose"].iter().any(|name| headers.contains_key(*name));
    if is_prefetch || method == Method::HEAD {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "Not in advance", "Open the link.");
    }
    let mut cookies = headers.get_all("cookie").iter().filter_map(|value| value.to_str().ok());
    if app.login.is_signed_in(&mut cookies) {
        return move_on();
    }
    match app.login.use_link(&params.token) {
        Ok(LinkUse::New(session)) => match HeaderValue::try_from(app.login.set_cookie(&session)) {
            Ok(cookie) => ([(SET_COOKIE, cookie)], move_on()).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        },
        Ok(LinkUse::Used) => plain_page(
            StatusCode::GONE,
            "This link was used already",
            "It works once. Use the window that it opened, or run chorusctl web again. If nobody of yours used it, end chorusctl web.",
        ),
        Ok(LinkUse::Unknown) => plain_page(
            StatusCode::FORBIDDEN,
            "Not a link of this chorusctl web",
            "Open the link that it printed, with everything after the question mark.",
        ),
        Err(error) => plain_page(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Cannot get random bytes",
            &layout::sentence(&error.to_string()),
        ),
    }
}

/// Returns a page that opens the first one in its place, so that the link is not in the history.
fn move_on() -> Response {
    page(layout::bare(
        "Opening",
        &html! {
            p data-go=(at("/")) { a href=(at("/")) { "Conversations" } }
            noscript { meta http-equiv="refresh" content=(format!("0;url={}", at("/"))); }
        },
    ))
}
