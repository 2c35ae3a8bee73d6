//! The addresses of the pages.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use chorus_session::export::html;

use crate::app::App;
use crate::failure_page::plain_page;
use crate::prefix::at;
use crate::{actions, guard, pages, stream};

/// The address of the link that is printed.
pub(crate) const OPEN: &str = "/open";
pub(crate) const SCRIPT: &str = "/script.js";
pub(crate) const STYLE: &str = "/style.css";
pub(crate) const EVENTS: &str = "/events";

/// Returns the pages, each behind the checks of [`guard`]. Without writing, what changes something does not exist.
pub(crate) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route(&at("/"), get(pages::home::show))
        .route(&at(OPEN), get(pages::open::show))
        .route(&at(SCRIPT), get(script))
        .route(&at(STYLE), get(style))
        .route(&at(EVENTS), get(stream::events))
        .route(&at("/search"), get(pages::search::show))
        .route(&at("/usage"), get(pages::usage::show))
        .route(&at("/approvals"), get(pages::approvals::show))
        .route(&at("/agent/{agent}"), get(pages::agent::show))
        .route(&at("/agent/{agent}/tree"), get(pages::tree::show))
        .route(&at("/agent/{agent}/live/{conversation}"), get(pages::live::show))
        .route(&at("/agent/{agent}/live/{conversation}/new"), get(pages::live::show_new))
        .route(&at("/agent/{agent}/live/{conversation}/state"), get(pages::live::show_state))
        .route(&at("/session/{session}"), get(pages::session::show));
    if !app.is_read_only {
        router = router
            .route(&at("/agent/{agent}/live/{conversation}/send"), post(actions::send))
            .route(&at("/agent/{agent}/live/{conversation}/cancel"), post(actions::cancel))
            .route(&at("/approvals/{approval}"), post(actions::decide));
    }
    // The guard limits bodies.
    let router = router.fallback(missing).method_not_allowed_fallback(wrong_method).layer(DefaultBodyLimit::disable());
    router.layer(from_fn_with_state(app.clone(), guard::guard)).with_state(app)
}

async fn missing() -> Response {
    plain_page(StatusCode::NOT_FOUND, "No such page", "The address may be misspelled.")
}

async fn wrong_method() -> Response {
    let text = "This page does not take that. Open it and use its buttons.";
    plain_page(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", text)
}

async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("script.js")).into_response()
}

/// The style of an exported page, and what the pages here have besides.
async fn style() -> Response {
    let style = [html::STYLE, include_str!("style.css")].concat();
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], style).into_response()
}
