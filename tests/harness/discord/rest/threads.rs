//! Threads.

use serde_json::{Value, json};

use super::channels::{check_channel, check_guild};
use super::{ApiResult, require_object};
use crate::discord::api_error::ApiError;
use crate::discord::http::{HttpResponse, RecordedRequest};
use crate::discord::objects::{Channel, TEXT_CHANNEL, THREAD_CHANNEL};
use crate::discord::permissions::{CREATE_PUBLIC_THREADS, MANAGE_THREADS, READ_MESSAGE_HISTORY};
use crate::discord::rules;
use crate::discord::state::State;

/// Creates a thread without a message that it starts from.
pub fn create(state: &mut State, channel: u64, body: &Value) -> ApiResult {
    let parent = check_channel(state, channel, CREATE_PUBLIC_THREADS)?;
    let (guild, kind) = (parent.guild, parent.kind);
    rules::threads::check(require_object(body)?)?;
    if kind != TEXT_CHANNEL {
        return Err(ApiError::violation(400, 50_024, "Cannot execute action on this channel type"));
    }
    let name = body["name"].as_str().unwrap_or_default();
    let id = state.add_channel(guild, THREAD_CHANNEL, name, None, Some(channel));
    Ok(HttpResponse::json(201, &state.channels[&id].to_json()))
}

/// Returns the active threads of a guild that the application sees:
/// <https://docs.discord.com/developers/resources/guild#list-active-guild-threads>.
pub fn active(state: &State, guild: u64) -> ApiResult {
    check_guild(state, guild)?;
    Ok(HttpResponse::json(200, &json!({"threads": state.active_threads(guild), "members": []})))
}

/// Returns the archived public threads of a channel, those that were archived last first:
/// <https://docs.discord.com/developers/resources/channel#list-public-archived-threads>.
pub fn archived(state: &State, channel: u64, asked: &RecordedRequest) -> ApiResult {
    check_channel(state, channel, READ_MESSAGE_HISTORY)?;
    let limit = asked.param("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    let below = |thread: &&Channel| thread.parent == Some(channel) && thread.kind == THREAD_CHANNEL && thread.archived;
    let mut threads: Vec<&Channel> = state.channels.values().filter(below).collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.archived_at));
    let has_more = threads.len() > limit;
    let threads: Value = threads.into_iter().take(limit).map(Channel::to_json).collect();
    Ok(HttpResponse::json(200, &json!({"threads": threads, "members": [], "has_more": has_more})))
}

/// Checks that the application may post in a channel now: a message unarchives a thread, unless it is locked and the
/// application no moderator.
pub fn check_not_locked(state: &State, channel: u64) -> Result<(), ApiError> {
    let Some(thread) = state.channels.get(&channel).filter(|channel| channel.archived && channel.locked) else {
        return Ok(());
    };
    if state.permissions(thread.id, state.application_id) & MANAGE_THREADS != 0 {
        return Ok(());
    }
    Err(archived_error())
}

/// Checks that the messages of a channel can be changed now.
pub fn check_active(state: &State, channel: u64) -> Result<(), ApiError> {
    match state.channels.get(&channel).is_some_and(|channel| channel.archived) {
        true => Err(archived_error()),
        false => Ok(()),
    }
}

fn archived_error() -> ApiError {
    ApiError::new(400, 50_083, "Thread is archived")
}
