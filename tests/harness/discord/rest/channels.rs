//! Guilds and their channels.

use serde_json::Value;

use super::{ApiResult, require_object};
use crate::discord::actions::normalize_channel_name;
use crate::discord::api_error::{ApiError, FormErrors};
use crate::discord::http::HttpResponse;
use crate::discord::objects::{CATEGORY_CHANNEL, Channel, Guild, TEXT_CHANNEL};
use crate::discord::permissions::{MANAGE_CHANNELS, VIEW_CHANNEL};
use crate::discord::rules;
use crate::discord::state::State;

/// Channels of a category at most.
const MAX_CHANNELS_PER_CATEGORY: usize = 50;
/// Channels of a guild at most.
const MAX_CHANNELS_PER_GUILD: usize = 500;

/// Checks that the guild exists and the application is in it.
pub fn check_guild(state: &State, guild: u64) -> Result<(), ApiError> {
    match state.guild(guild) {
        Some(guild) if !guild.is_left => Ok(()),
        Some(_) => Err(ApiError::missing_access()),
        None => Err(ApiError::new(404, 10_004, "Unknown Guild")),
    }
}

pub fn guild(state: &State, id: u64) -> ApiResult {
    check_guild(state, id)?;
    Ok(HttpResponse::json(200, &state.guild(id).map_or(Value::Null, Guild::to_json)))
}

pub fn member(state: &State, id: u64, member: u64) -> ApiResult {
    check_guild(state, id)?;
    let mut told = state.guild(id).map_or(Value::Null, |guild| guild.member_json(member));
    if told.is_null() {
        return Err(ApiError::new(404, 10_007, "Unknown Member"));
    }
    told["user"] = state.users.get(&member).map_or(Value::Null, crate::discord::objects::User::to_json);
    Ok(HttpResponse::json(200, &told))
}

pub fn roles(state: &State, id: u64) -> ApiResult {
    check_guild(state, id)?;
    Ok(HttpResponse::json(200, &state.guild(id).map_or(Value::Null, Guild::roles_json)))
}

pub fn list(state: &State, id: u64) -> ApiResult {
    check_guild(state, id)?;
    let channels = state.channels.values().filter(|channel| channel.guild == id && !channel.is_thread());
    let channels: Value = channels.map(Channel::to_json).collect();
    Ok(HttpResponse::json(200, &channels))
}

/// Returns the channel, if the application sees it and has the permissions `needed` there.
pub fn check_channel(state: &State, id: u64, needed: u64) -> Result<&Channel, ApiError> {
    let channel = state.channels.get(&id).ok_or_else(ApiError::unknown_channel)?;
    if channel.direct_with.is_none() && state.guild(channel.guild).is_none_or(|guild| guild.is_left) {
        return Err(ApiError::missing_access());
    }
    let permissions = state.permissions(id, state.application_id);
    if permissions & VIEW_CHANNEL == 0 {
        return Err(ApiError::missing_access());
    }
    if permissions & needed != needed {
        return Err(ApiError::missing_permissions());
    }
    Ok(channel)
}

pub fn get(state: &State, id: u64) -> ApiResult {
    Ok(HttpResponse::json(200, &check_channel(state, id, 0)?.to_json()))
}

pub fn create(state: &mut State, guild: u64, body: &Value) -> ApiResult {
    check_guild(state, guild)?;
    rules::channels::check(require_object(body)?, true)?;
    let permissions = state.guild(guild).map_or(0, |guild| guild.permissions(state.application_id));
    if permissions & MANAGE_CHANNELS == 0 {
        return Err(ApiError::missing_permissions());
    }
    if state.channels.values().filter(|channel| channel.guild == guild).count() >= MAX_CHANNELS_PER_GUILD {
        return Err(ApiError::new(400, 30_013, "Maximum number of server channels reached (500)"));
    }
    let parent = check_parent(state, guild, body)?;
    let kind = body["type"].as_u64().unwrap_or(TEXT_CHANNEL);
    let topic = body["topic"].as_str().map(str::to_owned);
    let id = state.add_channel(guild, kind, body["name"].as_str().unwrap_or_default(), topic, parent);
    Ok(HttpResponse::json(201, &state.channels[&id].to_json()))
}

/// Returns the category that the body names, if it exists and has room. A full category is no violation.
fn check_parent(state: &State, guild: u64, body: &Value) -> Result<Option<u64>, ApiError> {
    let Some(parent) = body["parent_id"].as_str().and_then(|id| id.parse().ok()) else { return Ok(None) };
    let mut errors = FormErrors::default();
    let there = state.channels.get(&parent).is_some_and(|found| found.guild == guild && found.kind == CATEGORY_CHANNEL);
    if !there {
        errors.add("parent_id", "CHANNEL_PARENT_INVALID", "Category does not exist");
    } else if state.channels.values().filter(|channel| channel.parent == Some(parent)).count()
        >= MAX_CHANNELS_PER_CATEGORY
    {
        errors.add("parent_id", "CHANNEL_PARENT_MAX_CHANNELS", "Maximum number of channels in category reached (50)");
    }
    errors.finish().map_err(|refusal| ApiError { is_violation: false, ..refusal })?;
    Ok(Some(parent))
}

pub fn modify(state: &mut State, id: u64, body: &Value) -> ApiResult {
    let channel = check_channel(state, id, MANAGE_CHANNELS)?;
    rules::channels::check(require_object(body)?, false)?;
    let parent = match body.get("parent_id") {
        None => channel.parent,
        Some(_) => check_parent(state, channel.guild, body)?,
    };
    if let Some(channel) = state.channels.get_mut(&id) {
        channel.parent = parent;
        if let Some(name) = body["name"].as_str() {
            channel.name = if channel.kind == TEXT_CHANNEL { normalize_channel_name(name) } else { name.to_owned() };
        }
        if let Some(topic) = body.get("topic") {
            channel.topic = topic.as_str().map(str::to_owned);
        }
    }
    state.dispatch_channel("CHANNEL_UPDATE", id);
    Ok(HttpResponse::json(200, &state.channels[&id].to_json()))
}

pub fn delete(state: &mut State, id: u64) -> ApiResult {
    let json = check_channel(state, id, MANAGE_CHANNELS)?.to_json();
    state.remove_channel(id);
    Ok(HttpResponse::json(200, &json))
}
