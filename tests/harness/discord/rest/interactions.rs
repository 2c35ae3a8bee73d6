//! The initial response to an interaction.

use std::time::Instant;

use serde_json::{Value, json};

use super::messages::{apply_edit, build_message, file_sizes, new_files};
use super::{ApiResult, require_object};
use crate::discord::api_error::{ApiError, FormErrors};
use crate::discord::http::{HttpResponse, RecordedRequest};
use crate::discord::messages::{EPHEMERAL, LOADING, Message};
use crate::discord::rules;
use crate::discord::rules::messages::{BodyKind, check};
use crate::discord::state::{InteractionRecord, State};

pub fn callback(state: &mut State, id: u64, token: &str, asked: &RecordedRequest) -> ApiResult {
    let unknown = ApiError::new(404, 10_062, "Unknown interaction");
    let Some(interaction) = state.interactions.get(&id).filter(|known| known.token == token).cloned() else {
        return Err(unknown);
    };
    if interaction.callback.is_some() {
        return Err(ApiError::violation(400, 40_060, "Interaction has already been acknowledged."));
    }
    if interaction.at.elapsed() > state.interaction_timeout {
        return Err(ApiError { is_violation: interaction.was_connected, ..unknown });
    }
    let body = require_object(&asked.body)?;
    let kind = check_callback_type(body, interaction.kind)?;
    let data = &body["data"];
    let made = match kind {
        4 => {
            check(data, "data", BodyKind::Callback, &file_sizes(asked))?;
            let message = build_message(state, interaction.channel, data, asked)?;
            Some(post_response(state, &interaction, message))
        }
        5 => {
            let mut message = Message::new(state.snowflakes.next(), interaction.channel, state.application_id, "");
            message.flags = LOADING | data["flags"].as_u64().unwrap_or(0) & EPHEMERAL;
            Some(post_response(state, &interaction, message))
        }
        7 => {
            check(data, "data", BodyKind::Callback, &file_sizes(asked))?;
            let new = new_files(state, asked);
            let changed = interaction.message.ok_or_else(ApiError::unknown_message)?;
            state.edit_message(changed, |message| apply_edit(message, data, new));
            Some(changed)
        }
        8 => {
            rules::commands::check_completion(data)?;
            None
        }
        9 => {
            rules::components::check_form(data)?;
            None
        }
        _ => interaction.message,
    };
    if let Some(known) = state.interactions.get_mut(&id) {
        known.callback = Some((kind, Instant::now()));
        known.original = made;
        known.choices = data.get("choices").cloned();
        known.form = (kind == 9).then(|| data.clone());
        if matches!(kind, 4 | 7) {
            known.responses.extend(made);
        }
    }
    if asked.param("with_response") != Some("true") {
        return Ok(HttpResponse::no_content());
    }
    let message = made.and_then(|id| state.messages.get(&id)).map(|message| state.message_json(message, false));
    Ok(HttpResponse::json(
        200,
        &json!({
            "interaction": {"id": id.to_string(), "type": interaction.kind, "response_message_id": made.map(|id| id.to_string())},
            "resource": {"type": kind, "message": message},
        }),
    ))
}

/// Returns the type of a response, if it fits this kind of interaction.
fn check_callback_type(body: &Value, asked: u64) -> Result<u64, ApiError> {
    let mut errors = FormErrors::default();
    rules::fields::Fields::of(body, "", &["type", "data"], &mut errors);
    let fits: &[u64] = match asked {
        2 => &[4, 5],
        3 => &[4, 5, 6, 7, 9],
        5 => &[4, 5, 6, 7],
        _ => &[8],
    };
    let kind = body["type"].as_u64().unwrap_or(0);
    if !fits.contains(&kind) {
        errors.add("type", "BASE_TYPE_CHOICES", format!("Value must be one of {fits:?}."));
    }
    errors.finish().map(|()| kind)
}

/// Posts a response in the channel. Its flags say whether only the user sees it.
pub fn post_response(state: &mut State, interaction: &InteractionRecord, mut message: Message) -> u64 {
    message.webhook = Some(state.application_id);
    message.interaction = Some(interaction.metadata.clone());
    message.ephemeral_for = (message.flags & EPHEMERAL != 0).then_some(interaction.user);
    // The response to a command has a type of its own; the one to a button is a reply.
    message.kind = if interaction.kind == 2 { 20 } else { 19 };
    message.reply_to = interaction.message.filter(|_| interaction.kind == 3);
    state.post_message(message)
}
