//! Messages of channels.

use serde_json::Value;

use super::channels::check_channel;
use super::threads;
use super::{ApiResult, require_object};
use crate::discord::api_error::ApiError;
use crate::discord::http::{HttpResponse, RecordedRequest};
use crate::discord::messages::{File, Message};
use crate::discord::objects::{Channel, TEXT_CHANNEL};
use crate::discord::permissions::{
    ATTACH_FILES, MANAGE_MESSAGES, MENTION_EVERYONE, READ_MESSAGE_HISTORY, SEND_MESSAGES, SEND_MESSAGES_IN_THREADS,
};
use crate::discord::rules::messages::{BodyKind, check};
use crate::discord::state::State;

/// Messages of a page at most.
const MAX_PAGE_SIZE: usize = 100;

pub fn typing(state: &State, channel: u64) -> ApiResult {
    check_channel(state, channel, send_permission(state, channel))?;
    Ok(HttpResponse::no_content())
}

/// Returns a page of messages, the newest first.
pub fn list(state: &State, channel: u64, asked: &RecordedRequest) -> ApiResult {
    check_channel(state, channel, 0)?;
    let param = |name: &str| asked.param(name).and_then(|value| value.parse::<u64>().ok());
    let limit = match asked.param("limit").map(str::parse) {
        None => 50,
        Some(Ok(limit @ 1..=MAX_PAGE_SIZE)) => limit,
        Some(_) => {
            let mut errors = crate::discord::api_error::FormErrors::default();
            errors.add("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.");
            errors.finish()?;
            50
        }
    };
    // Without Read Message History a page is empty.
    let may_read = state.permissions(channel, state.application_id) & READ_MESSAGE_HISTORY != 0;
    let all = state.public_messages(channel).filter(|_| may_read);
    let mut page: Vec<&Message> = match (param("after"), param("before")) {
        // The messages right after it, not the newest ones.
        (Some(after), _) => all.filter(|message| message.id > after).take(limit).collect(),
        (None, before) => {
            let mut page: Vec<_> =
                all.rev().filter(|message| before.is_none_or(|id| message.id < id)).take(limit).collect();
            page.reverse();
            page
        }
    };
    page.reverse();
    let page: Vec<Value> = page.into_iter().map(|message| state.message_json(message, false)).collect();
    Ok(HttpResponse::json(200, &page.into()))
}

pub fn get(state: &State, channel: u64, id: u64) -> ApiResult {
    check_channel(state, channel, READ_MESSAGE_HISTORY)?;
    Ok(HttpResponse::json(200, &state.message_json(find_message(state, channel, id)?, false)))
}

fn find_message(state: &State, channel: u64, id: u64) -> Result<&Message, ApiError> {
    let found = state.messages.get(&id).filter(|message| message.channel == channel && message.ephemeral_for.is_none());
    found.ok_or_else(ApiError::unknown_message)
}

/// Returns the files of a request, with new ids.
pub fn new_files(state: &mut State, asked: &RecordedRequest) -> Vec<File> {
    asked.files.iter().map(|file| File { id: state.snowflakes.next(), ..file.clone() }).collect()
}

pub fn file_sizes(asked: &RecordedRequest) -> Vec<usize> {
    asked.files.iter().map(|file| file.bytes.len()).collect()
}

/// Builds a message from a body. Whom it notifies depends on `allowed_mentions`.
pub fn build_message(
    state: &mut State,
    channel: u64,
    body: &Value,
    asked: &RecordedRequest,
) -> Result<Message, ApiError> {
    // Discord trims the content.
    let content = body["content"].as_str().unwrap_or_default().trim();
    let mut message = Message::new(state.snowflakes.next(), channel, state.application_id, content);
    message.embeds =
        body.get("embeds").filter(|embeds| embeds.is_array()).cloned().unwrap_or_else(|| Value::Array(vec![]));
    message.components =
        body.get("components").filter(|rows| rows.is_array()).cloned().unwrap_or_else(|| Value::Array(vec![]));
    message.files = new_files(state, asked);
    message.flags = body["flags"].as_u64().unwrap_or(0);
    let parse = body["allowed_mentions"].get("parse").and_then(Value::as_array);
    let everyone = content.contains("@everyone") || content.contains("@here");
    let may_call = state.permissions(channel, state.application_id) & MENTION_EVERYONE != 0;
    message.mention_everyone = everyone && may_call && parse.is_none_or(|parse| parse.contains(&"everyone".into()));
    if message.is_empty() {
        return Err(ApiError::violation(400, 50_006, "Cannot send an empty message"));
    }
    Ok(message)
}

pub fn create(state: &mut State, channel: u64, asked: &RecordedRequest) -> ApiResult {
    let body = require_object(&asked.body)?;
    let needed = send_permission(state, channel) | if asked.files.is_empty() { 0 } else { ATTACH_FILES };
    let found = check_channel(state, channel, needed)?;
    if found.kind != TEXT_CHANNEL && !found.is_thread() {
        return Err(ApiError::violation(400, 50_008, "Cannot send messages in a non-text channel"));
    }
    check(body, "", BodyKind::Create, &file_sizes(asked))?;
    threads::check_not_locked(state, channel)?;
    let nonce = body.get("nonce").cloned();
    if let Some(known) = find_by_nonce(state, nonce.as_ref()) {
        return Ok(HttpResponse::json(200, &state.message_json(&state.messages[&known], false)));
    }
    let mut message = build_message(state, channel, body, asked)?;
    message.nonce = nonce;
    let reference = &body["message_reference"];
    let original = reference["message_id"].as_str().and_then(|id| id.parse().ok()).or(reference["message_id"].as_u64());
    if let Some(original) = original {
        if state.permissions(channel, state.application_id) & READ_MESSAGE_HISTORY == 0 {
            return Err(ApiError::new(400, 160_002, "Cannot reply without permission to read message history"));
        }
        if find_message(state, channel, original).is_ok() {
            (message.reply_to, message.kind) = (Some(original), 19);
        } else if reference["fail_if_not_exists"] != false {
            let mut errors = crate::discord::api_error::FormErrors::default();
            errors.add("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message");
            errors.finish().map_err(|refusal| ApiError { is_violation: false, ..refusal })?;
        }
    }
    let id = state.post_message(message);
    Ok(HttpResponse::json(200, &state.message_json(&state.messages[&id], false)))
}

/// The permission to write in a channel or thread.
fn send_permission(state: &State, channel: u64) -> u64 {
    let is_thread = state.channels.get(&channel).is_some_and(Channel::is_thread);
    if is_thread { SEND_MESSAGES_IN_THREADS } else { SEND_MESSAGES }
}

/// Returns the message that was created with this nonce a short while ago.
fn find_by_nonce(state: &State, nonce: Option<&Value>) -> Option<u64> {
    let nonce = nonce?;
    let window = jiff::SignedDuration::try_from(state.nonce_window).ok()?;
    let since = jiff::Timestamp::now() - window;
    let mut own =
        state.messages.values().rev().filter(|message| message.author == state.application_id && message.at >= since);
    own.find(|message| message.nonce.as_ref() == Some(nonce)).map(|message| message.id)
}

/// Applies a body to a message. Its files are those that the body keeps, and the new ones.
pub fn apply_edit(message: &mut Message, body: &Value, new: Vec<File>) {
    if let Some(content) = body.get("content") {
        message.content = content.as_str().unwrap_or_default().trim().to_owned();
    }
    for (name, list) in [("embeds", &mut message.embeds), ("components", &mut message.components)] {
        if let Some(value) = body.get(name) {
            *list = if value.is_array() { value.clone() } else { Value::Array(vec![]) };
        }
    }
    if let Some(kept) = body["attachments"].as_array() {
        let kept: Vec<&str> = kept.iter().filter_map(|file| file["id"].as_str()).collect();
        message.files.retain(|file| kept.contains(&&*file.id.to_string()));
    }
    message.files.extend(new);
}

pub fn edit(state: &mut State, channel: u64, id: u64, asked: &RecordedRequest) -> ApiResult {
    let body = require_object(&asked.body)?;
    check_channel(state, channel, 0)?;
    let message = find_message(state, channel, id)?;
    if message.author != state.application_id {
        return Err(ApiError::violation(403, 50_005, "Cannot edit a message authored by another user"));
    }
    check(body, "", BodyKind::Edit, &file_sizes(asked))?;
    threads::check_active(state, channel)?;
    let new = new_files(state, asked);
    let mut after = find_message(state, channel, id)?.clone();
    apply_edit(&mut after, body, new);
    if after.is_empty() {
        return Err(ApiError::violation(400, 50_006, "Cannot send an empty message"));
    }
    state.edit_message(id, |message| *message = after);
    Ok(HttpResponse::json(200, &state.message_json(&state.messages[&id], false)))
}

pub fn delete(state: &mut State, channel: u64, id: u64) -> ApiResult {
    let own = {
        check_channel(state, channel, 0)?;
        find_message(state, channel, id)?.author == state.application_id
    };
    if !own {
        check_channel(state, channel, MANAGE_MESSAGES)?;
    }
    state.delete_message(id);
    Ok(HttpResponse::no_content())
}
