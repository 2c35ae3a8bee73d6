//! What Discord does for each request: one file per resource.

mod application;
mod channels;
mod interactions;
pub mod limits;
mod messages;
mod webhooks;

use serde_json::Value;

use super::http::{Answer, Recorded};
use super::refusal::Refusal;
use super::state::State;

type Reply = Result<Answer, Refusal>;

/// The answer to a request.
pub fn answer(state: &mut State, asked: &Recorded) -> Reply {
    let parts: Vec<&str> = asked.path.split('/').filter(|part| !part.is_empty()).collect();
    if let ["attachments", _, file, _] = parts[..] {
        return attachment(state, asked, number(file)?);
    }
    if !asked.user_agent.starts_with("DiscordBot (") {
        state.violation(format!("{} {}: the user agent {:?} names no bot", asked.method, asked.path, asked.user_agent));
    }
    // A token in the path is as good as one in the head.
    let open = matches!(parts[..], ["interactions" | "webhooks", ..]);
    if !open && asked.authorization != Some(format!("Bot {}", state.token)) {
        return Err(Refusal::new(401, 0, "401: Unauthorized"));
    }
    match (&*asked.method, &parts[..]) {
        ("GET", ["gateway", "bot"]) => application::gateway(state),
        ("GET", ["users", "@me"]) => application::own_user(state),
        ("GET", ["users", "@me", "guilds"]) => application::own_guilds(state),
        ("GET", ["oauth2", "applications", "@me"] | ["applications", "@me"]) => application::own(state),
        (method, ["applications", app, "commands"]) => application::commands(state, method, number(app)?, 0, asked),
        (method, ["applications", app, "guilds", guild, "commands"]) => {
            application::commands(state, method, number(app)?, number(guild)?, asked)
        }
        ("GET", ["guilds", guild]) => channels::guild(state, number(guild)?),
        ("GET", ["guilds", guild, "members", member]) => channels::member(state, number(guild)?, number(member)?),
        ("GET", ["guilds", guild, "roles"]) => channels::roles(state, number(guild)?),
        ("GET", ["guilds", guild, "channels"]) => channels::list(state, number(guild)?),
        ("POST", ["guilds", guild, "channels"]) => channels::create(state, number(guild)?, &asked.body),
        ("GET", ["channels", channel]) => channels::get(state, number(channel)?),
        ("PATCH", ["channels", channel]) => channels::modify(state, number(channel)?, &asked.body),
        ("DELETE", ["channels", channel]) => channels::delete(state, number(channel)?),
        ("POST", ["channels", channel, "typing"]) => messages::typing(state, number(channel)?),
        ("GET", ["channels", channel, "messages"]) => messages::list(state, number(channel)?, asked),
        ("POST", ["channels", channel, "messages"]) => messages::create(state, number(channel)?, asked),
        ("GET", ["channels", channel, "messages", id]) => messages::get(state, number(channel)?, number(id)?),
        ("PATCH", ["channels", channel, "messages", id]) => messages::edit(state, number(channel)?, number(id)?, asked),
        ("DELETE", ["channels", channel, "messages", id]) => messages::delete(state, number(channel)?, number(id)?),
        ("POST", ["interactions", id, token, "callback"]) => interactions::callback(state, number(id)?, token, asked),
        ("POST", ["webhooks", app, token]) => webhooks::create(state, number(app)?, token, asked),
        ("GET", ["webhooks", app, token, "messages", id]) => webhooks::get(state, number(app)?, token, id),
        ("PATCH", ["webhooks", app, token, "messages", id]) => webhooks::edit(state, number(app)?, token, id, asked),
        ("DELETE", ["webhooks", app, token, "messages", id]) => webhooks::delete(state, number(app)?, token, id),
        _ => Err(Refusal::mistake(404, 0, "404: Not Found")),
    }
}

fn number(text: &str) -> Result<u64, Refusal> {
    text.parse().map_err(|_| Refusal::mistake(404, 0, "404: Not Found"))
}

/// A file of a message, for whoever knows where it is.
fn attachment(state: &mut State, asked: &Recorded, file: u64) -> Reply {
    if asked.authorization.is_some() {
        state.violation(format!("the token was sent for the file {}", asked.path));
    }
    let found = state.messages.values().flat_map(|message| &message.files).find(|found| found.id == file);
    let Some(found) = found else { return Err(Refusal::new(404, 0, "404: Not Found")) };
    let kind = found.kind.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
    Ok(Answer { status: 200, headers: vec![("content-type", kind)], body: found.bytes.clone().into() })
}

/// A body where there must be one.
fn object(body: &Value) -> Result<&Value, Refusal> {
    if body.is_object() {
        Ok(body)
    } else {
        Err(Refusal::mistake(400, 50_109, "The request body contains invalid JSON."))
    }
}
