//! The application: its user, the URL of its gateway, its commands.

use serde_json::{Value, json};

use super::ApiResult;
use crate::discord::api_error::ApiError;
use crate::discord::http::{HttpResponse, RecordedRequest};
use crate::discord::rules;
use crate::discord::state::State;

pub fn gateway(state: &State) -> ApiResult {
    let limit = state.start_limit;
    let reset = u64::try_from(limit.reset_after.as_millis()).unwrap_or(u64::MAX);
    Ok(HttpResponse::json(
        200,
        &json!({
            "url": state.gateway_url, "shards": state.recommended_shards,
            "session_start_limit": {
                "total": limit.total, "remaining": limit.remaining, "reset_after": reset, "max_concurrency": state.max_concurrency,
            },
        }),
    ))
}

pub fn own_user(state: &State) -> ApiResult {
    let mut user = state.users[&state.application_id].to_json();
    (user["verified"], user["mfa_enabled"], user["email"]) = (true.into(), false.into(), Value::Null);
    Ok(HttpResponse::json(200, &user))
}

pub fn own_guilds(state: &State) -> ApiResult {
    let guilds: Vec<Value> = state
        .guilds
        .iter()
        .filter(|guild| !guild.is_left)
        .map(|guild| {
            let permissions = guild.permissions(state.application_id).to_string();
            json!({"id": guild.id.to_string(), "name": guild.name, "icon": null, "owner": false,
                   "permissions": permissions, "features": []})
        })
        .collect();
    Ok(HttpResponse::json(200, &guilds.into()))
}

pub fn application(state: &State) -> ApiResult {
    // With or without the Message Content intent of the developer portal.
    let flags = if state.message_content { 1 << 19 } else { 0 };
    Ok(HttpResponse::json(
        200,
        &json!({
            "id": state.application_id.to_string(), "name": "Chorus", "icon": null, "description": "", "bot_public": false,
            "bot_require_code_grant": false, "summary": "", "verify_key": "0".repeat(64), "team": null,
            "owner": {"id": "1", "username": "owner", "discriminator": "0", "global_name": null, "avatar": null},
            "flags": flags, "rpc_origins": [], "tags": [],
        }),
    ))
}

/// Lists or replaces the commands of a guild, or the global ones if `guild` is 0.
pub fn guild_commands(state: &mut State, method: &str, app: u64, guild: u64, asked: &RecordedRequest) -> ApiResult {
    if app != state.application_id {
        return Err(ApiError::new(404, 10_002, "Unknown Application"));
    }
    if guild != 0 && state.guild(guild).is_none_or(|guild| guild.is_left) {
        return Err(ApiError::missing_access());
    }
    if method == "PUT" {
        rules::commands::check(&asked.body)?;
        let list = asked.body.as_array().cloned().unwrap_or_default();
        let list = list.into_iter().map(|mut command| {
            command["id"] = state.snowflakes.next().to_string().into();
            command["application_id"] = app.to_string().into();
            command["version"] = state.snowflakes.next().to_string().into();
            command["type"] = 1.into();
            if guild != 0 {
                command["guild_id"] = guild.to_string().into();
            }
            for (name, value) in [("default_member_permissions", Value::Null), ("nsfw", false.into())] {
                if command.get(name).is_none() {
                    command[name] = value;
                }
            }
            command
        });
        let list = list.collect();
        state.commands.insert(guild, list);
        state.registrations += 1;
    } else if method != "GET" {
        return Err(ApiError::violation(405, 0, "405: Method Not Allowed"));
    }
    let list = state.commands.get(&guild).cloned().unwrap_or_default();
    Ok(HttpResponse::json(200, &list.into()))
}
