//! Builds the first events of a session from REST requests. A daemon that resumes the session of the previous one does
//! not receive them from the gateway.

use crate::rest::Route;
use chorus_engine::ops::discord::gateway_session::GatewaySession;
use serde_json::{Value, json};
use serenity::model::event::Event as Dispatch;
use serenity::model::id::{GuildId, UserId};

use super::event_parse::{Payload, parse_payload};
use crate::rest::{RestClient, RestError};
use crate::shards::shard_of;

/// For more guilds a new session is cheaper.
const MAX_GUILDS: usize = 20;
/// Guilds that a response lists at most.
const GUILDS_PAGE: usize = 200;

/// Returns READY and a GUILD_CREATE for each guild of a shard that can be read, as the gateway would send them now.
///
/// # Errors
/// Errors of Discord, or `Unreadable` if there are too many guilds or a response is malformed.
pub(super) async fn fetch(
    rest: &RestClient,
    session: &GatewaySession,
    (shard, count): (u32, u32),
) -> Result<Vec<Box<Dispatch>>, RestError> {
    let user: Value = rest.get(Route::UserMe).await?;
    let application: Value = rest.get(Route::Oauth2ApplicationCurrent).await?;
    let mut guilds: Vec<Value> = rest.get(Route::UserMeGuilds).await?;
    // There may be more.
    let is_whole = guilds.len() < GUILDS_PAGE;
    guilds.retain(|guild| parse_id(&guild["id"]).is_ok_and(|id| shard_of(GuildId::new(id), count) == shard));
    if guilds.len() > MAX_GUILDS || !is_whole {
        return Err(RestError::Unreadable("too many servers".into()));
    }
    let me = UserId::new(parse_id(&user["id"])?);
    let listed: Vec<Value> = guilds.iter().map(|guild| json!({"id": guild["id"], "unavailable": true})).collect();
    let mut told = vec![build_event(
        "READY",
        &json!({
            "v": 10, "user": user, "guilds": listed, "session_id": session.id,
            "resume_gateway_url": session.url.as_deref().unwrap_or_default(), "shard": [shard, count],
            "application": {"id": application["id"], "flags": application["flags"].as_u64().unwrap_or(0)},
        }),
    )?];
    for guild in &guilds {
        let id = GuildId::new(parse_id(&guild["id"])?);
        match fetch_guild(rest, id, me).await {
            Ok(server) => told.push(build_event("GUILD_CREATE", &server)?),
            // The guild stays unavailable, as in READY, so that the others need not wait for it.
            Err(error) if error.is_transient() => {
                tracing::warn!(guild = %id, %error, "cannot load a server")
            }
            Err(error) => return Err(error),
        }
    }
    Ok(told)
}

/// Returns the data of a GUILD_CREATE.
async fn fetch_guild(rest: &RestClient, guild_id: GuildId, user_id: UserId) -> Result<Value, RestError> {
    let mut whole: Value = rest.get(Route::Guild { guild_id }).await?;
    let channels: Value = rest.get(Route::GuildChannels { guild_id }).await?;
    let own: Value = rest.get(Route::GuildMember { guild_id, user_id }).await?;
    let active: Value = rest.get(Route::GuildActiveThreads { guild_id }).await?;
    // A list that is missing is not an empty one: without it every thread would count as archived.
    if !active["threads"].is_array() {
        return Err(RestError::Unreadable("the list of active threads is missing".into()));
    }
    whole["threads"] = active["threads"].clone();
    whole["joined_at"] = own["joined_at"].clone();
    (whole["channels"], whole["members"]) = (channels, json!([own]));
    (whole["large"], whole["unavailable"]) = (false.into(), false.into());
    if !whole["member_count"].is_u64() {
        whole["member_count"] = whole["approximate_member_count"].as_u64().unwrap_or(1).into();
    }
    for none in ["presences", "voice_states", "stage_instances", "guild_scheduled_events"] {
        whole[none] = json!([]);
    }
    Ok(whole)
}

fn parse_id(id: &Value) -> Result<u64, RestError> {
    let id = id.as_str().and_then(|id| id.parse().ok()).filter(|id| *id != 0);
    id.ok_or_else(|| RestError::Unreadable("an ID is invalid".into()))
}

fn build_event(kind: &str, data: &Value) -> Result<Box<Dispatch>, RestError> {
    match parse_payload(&json!({"op": 0, "s": 0, "t": kind, "d": data}).to_string()) {
        Payload::Dispatch { event, .. } => Ok(event),
        Payload::Unreadable { kind, why, .. } => Err(RestError::Unreadable(format!("{kind}: {why}"))),
        _ => Err(RestError::Unreadable(kind.to_owned())),
    }
}
