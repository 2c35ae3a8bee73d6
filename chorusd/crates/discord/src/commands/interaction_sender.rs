//! Sends responses of interactions to Discord.

use std::future::Future;
use std::time::Duration;

use chorus_base::error::Result;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::response::Response;
use super::text_format::{error_text, truncate};
use super::wait_stop_grace;
use crate::app::DiscordApp;
use crate::rest::interactions::{InitialResponse, InteractionRef};
use crate::rest::{RestClient, RestError};

/// How often a response is tried, and how long that may take with all waits for limits: after 15 minutes the
/// interaction's token expires.
const MAX_TRIES: u32 = 5;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(14 * 60);

/// Shown instead of a response whose file Discord does not accept.
const FILE_REJECTED_TEXT: &str =
    "Discord rejected the file. It may be too large for this server. Ask the agent to compress or split it.";

/// Sends the initial response. Returns whether it arrived; if not, the interaction must not be acted on.
pub(super) async fn send_initial_response(rest: &RestClient, way: &InteractionRef, answer: &InitialResponse) -> bool {
    let given = rest.create_response(way, answer).await;
    if let Err(error) = &given {
        tracing::warn!(%error, "cannot respond to an interaction; ignoring it");
    }
    given.is_ok()
}

/// Sends the outcome of a command. An error is shown only to the caller.
pub(super) async fn send_outcome(app: &DiscordApp, way: &InteractionRef, private: bool, done: Result<Response>) {
    match done {
        Ok(reply) => send_edit(app, way, &reply).await,
        Err(failure) if private => send_edit(app, way, &Response::new(error_text(app, &failure))).await,
        Err(failure) => {
            // Delete the deferred response first: Discord would put a follow-up in its place, for everybody to see.
            send_with_retries(&app.stop, || app.rest.delete_response(way)).await;
            send_followup(app, way, &error_text(app, &failure), true).await;
        }
    }
}

/// Replaces the deferred response, or the message whose button was pressed.
pub(super) async fn send_edit(app: &DiscordApp, way: &InteractionRef, reply: &Response) {
    let (body, file) = Response { text: app.redact(&reply.text), ..reply.clone() }.to_request();
    let delivery = send_with_retries(&app.stop, || app.rest.edit_response(way, body.clone(), file.clone())).await;
    if delivery == Delivery::Rejected && file.is_some() {
        let (body, _) = Response::new(FILE_REJECTED_TEXT).to_request();
        send_with_retries(&app.stop, || app.rest.edit_response(way, body.clone(), None)).await;
    }
    if let Some(aloud) = &reply.public_text {
        send_followup(app, way, aloud, false).await;
    }
}

/// Sends a follow-up message; if `private`, only the caller sees it.
pub(super) async fn send_followup(app: &DiscordApp, way: &InteractionRef, text: &str, private: bool) {
    let text = truncate(&app.redact(text), 2000);
    send_with_retries(&app.stop, || app.rest.create_followup(way, &text, private)).await;
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Delivered,
    /// Discord does not accept the request.
    Rejected,
    /// The time was too short.
    Late,
}

/// Sends a request, with retries after errors that may pass, until the daemon stops.
async fn send_with_retries<F: Future<Output = Result<(), RestError>>>(
    stop: &CancellationToken,
    send: impl Fn() -> F,
) -> Delivery {
    let sent = async {
        let mut wait = Duration::from_millis(500);
        for tries in 1.. {
            match send().await {
                Err(error) if error.is_transient() && tries < MAX_TRIES => {
                    sleep(wait).await;
                    wait *= 2;
                }
                Err(error) => {
                    tracing::warn!(%error, "a response was not delivered");
                    return if error.is_transient() { Delivery::Late } else { Delivery::Rejected };
                }
                Ok(()) => return Delivery::Delivered,
            }
        }
        Delivery::Late
    };
    tokio::select! {
        delivery = sent => return delivery,
        () = sleep(RESPONSE_TIMEOUT) => tracing::warn!("a response was not delivered in time"),
        () = wait_stop_grace(stop) => tracing::warn!("a response was not delivered before the shutdown"),
    }
    Delivery::Late
}
