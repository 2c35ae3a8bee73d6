//! Later responses to an interaction.

use std::time::Duration;

use super::interactions::post_response;
use super::messages::{apply_edit, build_message, file_sizes, new_files};
use super::{ApiResult, parse_id, require_object};
use crate::discord::api_error::ApiError;
use crate::discord::http::{HttpResponse, RecordedRequest};
use crate::discord::messages::{EPHEMERAL, LOADING};
use crate::discord::rules::messages::{BodyKind, check};
use crate::discord::state::{InteractionRecord, State};

/// How long the token of an interaction is valid.
const TOKEN_LIFETIME: Duration = Duration::from_secs(15 * 60);

fn find_interaction(state: &State, app: u64, token: &str) -> Result<InteractionRecord, ApiError> {
    if app != state.application_id {
        return Err(ApiError::unknown_webhook());
    }
    let known = state.interactions.values().find(|interaction| interaction.token == token);
    let known = known.ok_or_else(ApiError::unknown_webhook)?;
    if known.at.elapsed() > TOKEN_LIFETIME {
        return Err(ApiError::new(401, 50_027, "Invalid Webhook Token"));
    }
    // Before the initial response nothing can be edited or followed up.
    if known.callback.is_none() {
        return Err(ApiError::violation(404, 10_015, "Unknown Webhook"));
    }
    Ok(known.clone())
}

/// Returns the id of a message that is a response to this interaction.
fn find_response(state: &State, interaction: &InteractionRecord, id: &str) -> Result<u64, ApiError> {
    let id =
        if id == "@original" { interaction.original.ok_or_else(ApiError::unknown_message)? } else { parse_id(id)? };
    let own = interaction.original == Some(id) || interaction.responses.contains(&id);
    if own && state.messages.contains_key(&id) { Ok(id) } else { Err(ApiError::unknown_message()) }
}

fn record_response(state: &mut State, interaction: u64, message: u64) {
    if let Some(interaction) = state.interactions.get_mut(&interaction)
        && !interaction.responses.contains(&message)
    {
        interaction.responses.push(message);
    }
}

pub fn get(state: &State, app: u64, token: &str, id: &str) -> ApiResult {
    let id = find_response(state, &find_interaction(state, app, token)?, id)?;
    Ok(HttpResponse::json(200, &state.message_json(&state.messages[&id], false)))
}

pub fn create(state: &mut State, app: u64, token: &str, asked: &RecordedRequest) -> ApiResult {
    let interaction = find_interaction(state, app, token)?;
    let body = require_object(&asked.body)?;
    check(body, "", BodyKind::Followup, &file_sizes(asked))?;
    // Until the deferred response is filled, a follow-up takes its place, with its visibility.
    let waiting = interaction.original.filter(|id| state.messages.get(id).is_some_and(|own| own.flags & LOADING != 0));
    let id = match waiting {
        Some(id) => {
            fill_response(state, id, asked)?;
            id
        }
        None => {
            let message = build_message(state, interaction.channel, body, asked)?;
            post_response(state, &interaction, message)
        }
    };
    record_response(state, interaction.id, id);
    Ok(HttpResponse::json(200, &state.message_json(&state.messages[&id], false)))
}

/// Replaces a response by a body.
fn fill_response(state: &mut State, id: u64, asked: &RecordedRequest) -> Result<(), ApiError> {
    let new = new_files(state, asked);
    let mut after = state.messages.get(&id).cloned().ok_or_else(ApiError::unknown_message)?;
    apply_edit(&mut after, &asked.body, new);
    after.flags &= !LOADING;
    if after.is_empty() {
        return Err(ApiError::violation(400, 50_006, "Cannot send an empty message"));
    }
    debug_assert_eq!(after.ephemeral_for.is_some(), after.flags & EPHEMERAL != 0);
    state.edit_message(id, |message| *message = after);
    Ok(())
}

pub fn edit(state: &mut State, app: u64, token: &str, id: &str, asked: &RecordedRequest) -> ApiResult {
    let interaction = find_interaction(state, app, token)?;
    let id = find_response(state, &interaction, id)?;
    check(require_object(&asked.body)?, "", BodyKind::EditResponse, &file_sizes(asked))?;
    fill_response(state, id, asked)?;
    record_response(state, interaction.id, id);
    Ok(HttpResponse::json(200, &state.message_json(&state.messages[&id], false)))
}

pub fn delete(state: &mut State, app: u64, token: &str, id: &str) -> ApiResult {
    let id = find_response(state, &find_interaction(state, app, token)?, id)?;
    state.delete_message(id);
    Ok(HttpResponse::no_content())
}
