//! What a page can change: send a message, cancel a turn, decide an approval.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use chorus_base::hex;
use chorus_daemon_client::Failure;
use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::{Approve, ApproveParams, Deny, DenyParams};
use chorus_proto::methods::send::{Cancel, CancelParams, Send, SendParams};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::app::App;
use crate::extract::{FormFields, PathParams};
use crate::failure_page::{action_failure, is_script};
use crate::guard::{MAX_TEXT, TOO_LONG};
use crate::prefix;
use crate::text::live_path;

#[derive(Debug, Deserialize)]
pub(crate) struct SendForm {
    text: String,
    /// Sent twice, the message is still one.
    key: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CancelForm {
    turn: Option<Uuid>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DecideForm {
    decision: String,
    hash: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    back: String,
}

/// Answers our script with nothing, and a browser without it with the page that it continues at.
fn done(headers: &HeaderMap, back: &str) -> Response {
    match is_script(headers) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => Redirect::to(back).into_response(),
    }
}

fn invalid(message: &str) -> Failure {
    Failure { message: message.into(), hint: None, kind: Some(ErrorKind::InvalidParams) }
}

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    PathParams((agent, conversation)): PathParams<(String, String)>,
    headers: HeaderMap,
    FormFields(form): FormFields<SendForm>,
) -> Response {
    let back = live_path(&agent, Some(&conversation));
    if form.text.len() >= MAX_TEXT {
        return (StatusCode::PAYLOAD_TOO_LARGE, TOO_LONG).into_response();
    }
    match start_turn(&app, agent, conversation, form).await {
        Ok(()) => done(&headers, &back),
        Err(failure) => action_failure(&headers, failure),
    }
}

/// Starts a turn, and returns when it runs or is queued. Its reply arrives in the conversation.
async fn start_turn(app: &App, agent: String, conversation: String, form: SendForm) -> Result<(), Failure> {
    if form.text.trim().is_empty() {
        return Err(invalid("the message is empty"));
    }
    // Forms have the line ends of the network.
    let text = form.text.replace("\r\n", "\n");
    let mut daemon = app.connect().await?;
    let params = SendParams {
        agent: Some(agent),
        conversation: Some(conversation),
        key: form.key.filter(|key| !key.is_empty()).map(|key| key_of(&key, &text)),
        text,
        stream: true,
        ..Default::default()
    };
    daemon.start::<Send>(&params).await?;
    // The page that follows the conversation shows how it ends.
    chorus_runtime::spawn(daemon.finish());
    Ok(())
}

/// Returns the key of a message: of the page's one and of the text, so that a text that was changed before it was sent again is another
/// message.
fn key_of(page: &str, text: &str) -> String {
    format!("{page}:{}", hex(&Sha256::digest(text)))
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    PathParams((agent, conversation)): PathParams<(String, String)>,
    headers: HeaderMap,
    FormFields(form): FormFields<CancelForm>,
) -> Response {
    let back = live_path(&agent, Some(&conversation));
    let params = CancelParams { agent: Some(agent), conversation: Some(conversation), turn_id: form.turn };
    let cancelled = async { app.connect().await?.call::<Cancel>(params).await };
    match cancelled.await {
        Ok(_) => done(&headers, &back),
        Err(failure) => action_failure(&headers, failure),
    }
}

pub(crate) async fn decide(
    State(app): State<Arc<App>>,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    FormFields(form): FormFields<DecideForm>,
) -> Response {
    // Only to a page of ours.
    let is_path =
        prefix::strip(&form.back).is_some_and(|path| !path.starts_with("//") && !path.contains(['\\', '\r', '\n']));
    let back = if is_path { form.back.clone() } else { prefix::at("/approvals") };
    match decide_approval(&app, id, form).await {
        Ok(()) => done(&headers, &back),
        Err(failure) => action_failure(&headers, failure),
    }
}

async fn decide_approval(app: &App, id: String, form: DecideForm) -> Result<(), Failure> {
    let decision = &*form.decision;
    let reason = Some(form.reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    if decision == "deny" {
        let mut daemon = app.connect().await?;
        return daemon.call::<Deny>(DenyParams { id, reason }).await.map(drop);
    }
    if !["once", "always", "pattern", "turn"].contains(&decision) {
        return Err(invalid("unknown answer"));
    }
    if reason.is_some() {
        let hint = Some("to refuse the action, choose Deny; to approve it, leave the reason empty".into());
        return Err(Failure { hint, ..invalid("only a denial has a reason") });
    }
    let mut daemon = app.connect().await?;
    let params = ApproveParams {
        id,
        always: decision == "always",
        pattern: decision == "pattern",
        turn: decision == "turn",
        hash: Some(form.hash),
    };
    daemon.call::<Approve>(params).await.map(drop)
}
