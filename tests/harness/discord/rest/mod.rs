//! Executes REST requests, one file per resource.

mod application;
mod channels;
mod interactions;
mod messages;
pub mod rate_limit;
mod threads;
mod webhooks;

use serde_json::Value;

use super::api_error::ApiError;
use super::http::{HttpResponse, RecordedRequest};
use super::state::State;

type ApiResult = Result<HttpResponse, ApiError>;

/// Executes a request and returns the response.
pub fn handle_request(state: &mut State, asked: &RecordedRequest) -> ApiResult {
    let parts: Vec<&str> = asked.path.split('/').filter(|part| !part.is_empty()).collect();
    if let ["attachments", _, file, _] = parts[..] {
        return attachment(state, asked, parse_id(file)?);
    }
    if !asked.user_agent.starts_with("DiscordBot (") {
        state.record_violation(format!(
            "{} {}: the user agent {:?} names no bot",
            asked.method, asked.path, asked.user_agent
        ));
    }
    // A token in the path authorizes a request like one in the header.
    let open = matches!(parts[..], ["interactions" | "webhooks", ..]);
    if !open && asked.authorization != Some(format!("Bot {}", state.token)) {
        return Err(ApiError::new(401, 0, "401: Unauthorized"));
    }
    match (&*asked.method, &parts[..]) {
        ("GET", ["gateway", "bot"]) => application::gateway(state),
        ("GET", ["users", "@me"]) => application::own_user(state),
        ("GET", ["users", "@me", "guilds"]) => application::own_guilds(state),
        ("GET", ["oauth2", "applications", "@me"] | ["applications", "@me"]) => application::application(state),
        (method, ["applications", app, "commands"]) => {
            application::guild_commands(state, method, parse_id(app)?, 0, asked)
        }
        (method, ["applications", app, "guilds", guild, "commands"]) => {
            application::guild_commands(state, method, parse_id(app)?, parse_id(guild)?, asked)
        }
        ("GET", ["guilds", guild]) => channels::guild(state, parse_id(guild)?),
        ("GET", ["guilds", guild, "members", member]) => channels::member(state, parse_id(guild)?, parse_id(member)?),
        ("GET", ["guilds", guild, "roles"]) => channels::roles(state, parse_id(guild)?),
        ("GET", ["guilds", guild, "channels"]) => channels::list(state, parse_id(guild)?),
        ("GET", ["guilds", guild, "threads", "active"]) => threads::active(state, parse_id(guild)?),
        ("GET", ["channels", channel, "threads", "archived", "public"]) => {
            threads::archived(state, parse_id(channel)?, asked)
        }
        ("POST", ["guilds", guild, "channels"]) => channels::create(state, parse_id(guild)?, &asked.body),
        ("GET", ["channels", channel]) => channels::get(state, parse_id(channel)?),
        ("PATCH", ["channels", channel]) => channels::modify(state, parse_id(channel)?, &asked.body),
        ("DELETE", ["channels", channel]) => channels::delete(state, parse_id(channel)?),
        ("POST", ["channels", channel, "threads"]) => threads::create(state, parse_id(channel)?, &asked.body),
        ("POST", ["channels", channel, "typing"]) => messages::typing(state, parse_id(channel)?),
        ("GET", ["channels", channel, "messages"]) => messages::list(state, parse_id(channel)?, asked),
        ("POST", ["channels", channel, "messages"]) => messages::create(state, parse_id(channel)?, asked),
        ("GET", ["channels", channel, "messages", id]) => messages::get(state, parse_id(channel)?, parse_id(id)?),
        ("PATCH", ["channels", channel, "messages", id]) => {
            messages::edit(state, parse_id(channel)?, parse_id(id)?, asked)
        }
        ("DELETE", ["channels", channel, "messages", id]) => messages::delete(state, parse_id(channel)?, parse_id(id)?),
        ("POST", ["interactions", id, token, "callback"]) => interactions::callback(state, parse_id(id)?, token, asked),
        ("POST", ["webhooks", app, token]) => webhooks::create(state, parse_id(app)?, token, asked),
        ("GET", ["webhooks", app, token, "messages", id]) => webhooks::get(state, parse_id(app)?, token, id),
        ("PATCH", ["webhooks", app, token, "messages", id]) => webhooks::edit(state, parse_id(app)?, token, id, asked),
        ("DELETE", ["webhooks", app, token, "messages", id]) => webhooks::delete(state, parse_id(app)?, token, id),
        _ => Err(ApiError::violation(404, 0, "404: Not Found")),
    }
}

fn parse_id(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| ApiError::violation(404, 0, "404: Not Found"))
}

/// Returns a file of a message, for anybody who knows its URL.
fn attachment(state: &mut State, asked: &RecordedRequest, file: u64) -> ApiResult {
    if asked.authorization.is_some() {
        state.record_violation(format!("the token was sent for the file {}", asked.path));
    }
    let found = state.messages.values().flat_map(|message| &message.files).find(|found| found.id == file);
    let Some(found) = found else { return Err(ApiError::new(404, 0, "404: Not Found")) };
    let kind = found.kind.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
    Ok(HttpResponse { status: 200, headers: vec![("content-type", kind)], body: found.bytes.clone().into() })
}

/// Returns the body if it is an object.
fn require_object(body: &Value) -> Result<&Value, ApiError> {
    if body.is_object() {
        Ok(body)
    } else {
        Err(ApiError::violation(400, 50_109, "The request body contains invalid JSON."))
    }
}
