//! Servers and their channels.

use serde_json::Value;

use super::{Reply, object};
use crate::discord::deeds::text_name;
use crate::discord::http::Answer;
use crate::discord::permissions::{MANAGE_CHANNELS, VIEW_CHANNEL};
use crate::discord::refusal::{Errors, Refusal};
use crate::discord::rules;
use crate::discord::state::State;
use crate::discord::world::{CATEGORY, Channel, Guild, TEXT, THREAD};

/// The most channels of a category.
const IN_A_CATEGORY: usize = 50;
/// The most channels of a server.
const IN_A_GUILD: usize = 500;

/// The server is there, and the application in it.
fn known(state: &State, guild: u64) -> Result<(), Refusal> {
    match state.guild(guild) {
        Some(guild) if !guild.left => Ok(()),
        Some(_) => Err(Refusal::missing_access()),
        None => Err(Refusal::new(404, 10_004, "Unknown Guild")),
    }
}

pub fn guild(state: &State, id: u64) -> Reply {
    known(state, id)?;
    Ok(Answer::json(200, &state.guild(id).map_or(Value::Null, Guild::json)))
}

pub fn member(state: &State, id: u64, member: u64) -> Reply {
    known(state, id)?;
    let mut told = state.guild(id).map_or(Value::Null, |guild| guild.member_json(member));
    if told.is_null() {
        return Err(Refusal::new(404, 10_007, "Unknown Member"));
    }
    told["user"] = state.users.get(&member).map_or(Value::Null, crate::discord::world::User::json);
    Ok(Answer::json(200, &told))
}

pub fn roles(state: &State, id: u64) -> Reply {
    known(state, id)?;
    Ok(Answer::json(200, &state.guild(id).map_or(Value::Null, Guild::roles_json)))
}

pub fn list(state: &State, id: u64) -> Reply {
    known(state, id)?;
    let channels = state.channels.values().filter(|channel| channel.guild == id && channel.kind != THREAD);
    let channels: Value = channels.map(Channel::json).collect();
    Ok(Answer::json(200, &channels))
}

/// The channel, as far as the application sees it and may do this in it.
pub fn allowed(state: &State, id: u64, needed: u64) -> Result<&Channel, Refusal> {
    let channel = state.channels.get(&id).ok_or_else(Refusal::unknown_channel)?;
    if channel.with.is_none() && state.guild(channel.guild).is_none_or(|guild| guild.left) {
        return Err(Refusal::missing_access());
    }
    let permissions = state.permissions(id, state.app);
    if permissions & VIEW_CHANNEL == 0 {
        return Err(Refusal::missing_access());
    }
    if permissions & needed != needed {
        return Err(Refusal::missing_permissions());
    }
    Ok(channel)
}

pub fn get(state: &State, id: u64) -> Reply {
    Ok(Answer::json(200, &allowed(state, id, 0)?.json()))
}

pub fn create(state: &mut State, guild: u64, body: &Value) -> Reply {
    known(state, guild)?;
    rules::channels::check(object(body)?, true)?;
    let permissions = state.guild(guild).map_or(0, |guild| guild.permissions(state.app));
    if permissions & MANAGE_CHANNELS == 0 {
        return Err(Refusal::missing_permissions());
    }
    if state.channels.values().filter(|channel| channel.guild == guild).count() >= IN_A_GUILD {
        return Err(Refusal::new(400, 30_013, "Maximum number of server channels reached (500)"));
    }
    let parent = parent(state, guild, body)?;
    let kind = body["type"].as_u64().unwrap_or(TEXT);
    let topic = body["topic"].as_str().map(str::to_owned);
    let id = state.add_channel(guild, kind, body["name"].as_str().unwrap_or_default(), topic, parent);
    Ok(Answer::json(201, &state.channels[&id].json()))
}

/// The category that is named, which must be one and have room. What is wrong with a full one is no mistake.
fn parent(state: &State, guild: u64, body: &Value) -> Result<Option<u64>, Refusal> {
    let Some(parent) = body["parent_id"].as_str().and_then(|id| id.parse().ok()) else { return Ok(None) };
    let mut errors = Errors::default();
    let there = state.channels.get(&parent).is_some_and(|found| found.guild == guild && found.kind == CATEGORY);
    if !there {
        errors.add("parent_id", "CHANNEL_PARENT_INVALID", "Category does not exist");
    } else if state.channels.values().filter(|channel| channel.parent == Some(parent)).count() >= IN_A_CATEGORY {
        errors.add("parent_id", "CHANNEL_PARENT_MAX_CHANNELS", "Maximum number of channels in category reached (50)");
    }
    errors.done().map_err(|refusal| Refusal { mistake: false, ..refusal })?;
    Ok(Some(parent))
}

pub fn modify(state: &mut State, id: u64, body: &Value) -> Reply {
    let channel = allowed(state, id, MANAGE_CHANNELS)?;
    rules::channels::check(object(body)?, false)?;
    let parent = match body.get("parent_id") {
        None => channel.parent,
        Some(_) => parent(state, channel.guild, body)?,
    };
    if let Some(channel) = state.channels.get_mut(&id) {
        channel.parent = parent;
        if let Some(name) = body["name"].as_str() {
            channel.name = if channel.kind == TEXT { text_name(name) } else { name.to_owned() };
        }
        if let Some(topic) = body.get("topic") {
            channel.topic = topic.as_str().map(str::to_owned);
        }
    }
    state.dispatch_channel("CHANNEL_UPDATE", id);
    Ok(Answer::json(200, &state.channels[&id].json()))
}

pub fn delete(state: &mut State, id: u64) -> Reply {
    let json = allowed(state, id, MANAGE_CHANNELS)?.json();
    state.remove_channel(id);
    Ok(Answer::json(200, &json))
}
