//! Handles the frames that the application sends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::session::{Connection, ConnectionEnd, MESSAGE_CONTENT, Session};
use crate::discord::state::State;

/// Frames that a connection may send per minute.
const MAX_FRAMES_PER_MINUTE: usize = 120;
/// The intent bits that have a meaning.
const KNOWN_INTENTS: u64 = 0b11_0011_1111_1111_1111_1111_1111;

/// Handles a frame of the connection `id`.
pub fn handle_frame(state: &mut State, id: u64, text: &str) {
    let Some(connection) = state.connections.get_mut(&id).filter(|connection| connection.end.is_none()) else { return };
    if connection.is_silent {
        return;
    }
    connection.received_at.push_back(Instant::now());
    while connection.received_at.front().is_some_and(|at| at.elapsed() > Duration::from_secs(60)) {
        connection.received_at.pop_front();
    }
    if connection.received_at.len() > MAX_FRAMES_PER_MINUTE {
        return close_as_violation(state, id, 4008, "You are being rate limited.");
    }
    if text.len() > 4096 {
        return close_as_violation(state, id, 4002, "Error while decoding payload.");
    }
    let Ok(frame) = serde_json::from_str::<Value>(text) else {
        return close_as_violation(state, id, 4002, "Error while decoding payload.");
    };
    let known = connection.session.is_some();
    let data = &frame["d"];
    match frame["op"].as_u64() {
        Some(1) => handle_heartbeat(state, id, data),
        Some(2 | 6) if known => close_as_violation(state, id, 4005, "Already authenticated."),
        Some(2) => identify(state, id, data),
        Some(6) => resume(state, id, data),
        _ if !known => close_as_violation(state, id, 4003, "Not authenticated."),
        Some(3 | 4 | 8) => {}
        _ => close_as_violation(state, id, 4001, "Unknown opcode."),
    }
}

/// Closes a connection because of something that a correct application never does.
fn close_as_violation(state: &mut State, id: u64, code: u16, why: &'static str) {
    state.record_violation(format!("gateway: closed with {code}: {why}"));
    close_connection(state, id, code, why);
}

pub fn close_connection(state: &mut State, id: u64, code: u16, why: &'static str) {
    if let Some(connection) = state.connections.get_mut(&id) {
        connection.close(code, why);
    }
}

fn handle_heartbeat(state: &mut State, id: u64, data: &Value) {
    let Some(connection) = state.connections.get_mut(&id) else { return };
    let gap = connection.last_heartbeat.elapsed();
    connection.last_heartbeat = Instant::now();
    state.longest_heartbeat_gap = state.longest_heartbeat_gap.max(gap);
    connection.send_op(11, Value::Null);
    let session = connection.session.as_ref().and_then(|session| state.sessions.get(session));
    // A session that could not be resumed is still named until its refusal has arrived.
    let Some(said) = session.map(|session| session.seq) else { return };
    if data.as_u64().is_some_and(|seq| seq > said) {
        state.record_violation(format!("gateway: a heartbeat names {data}, the last is {said}"));
    }
}

/// Discord accepts the token with the `Bot ` prefix of requests, and without it.
fn has_valid_token(state: &State, data: &Value) -> bool {
    data["token"].as_str().is_some_and(|token| token.strip_prefix("Bot ").unwrap_or(token) == state.token)
}

fn identify(state: &mut State, id: u64, data: &Value) {
    if !has_valid_token(state, data) {
        return close_connection(state, id, 4004, "Authentication failed.");
    }
    let Some(intents) = data["intents"].as_u64().filter(|intents| intents & !KNOWN_INTENTS == 0) else {
        return close_as_violation(state, id, 4013, "Invalid intent(s).");
    };
    if ["os", "browser", "device"].iter().any(|name| !data["properties"][name].is_string()) {
        return close_as_violation(state, id, 4002, "Error while decoding payload.");
    }
    if intents & MESSAGE_CONTENT != 0 && !state.message_content {
        return close_connection(state, id, 4014, "Disallowed intent(s).");
    }
    let shard = data.get("shard").map_or(Some((0, 1)), |shard| Some((shard[0].as_u64()?, shard[1].as_u64()?)));
    let Some(shard) = shard.filter(|(shard, count)| shard < count) else {
        return close_connection(state, id, 4010, "Invalid shard.");
    };
    let session = Session { seq: 0, intents, shard, log: Vec::new(), connection: Some(id) };
    let own = state.guilds.iter().filter(|guild| !guild.is_left && session.receives(Some(guild.id))).count();
    if own > state.max_guilds {
        return close_connection(state, id, 4011, "Sharding required.");
    }
    let bucket = shard.0 % state.max_concurrency;
    if state.identified_at.get(&bucket).is_some_and(|at| at.elapsed() < state.identify_interval) {
        state.identifies_refused += 1;
        return send_invalid_session(state, id, false);
    }
    if state.start_limit.remaining == 0 {
        return close_as_violation(state, id, 4004, "Authentication failed.");
    }
    state.start_limit.remaining -= 1;
    state.identified_at.insert(bucket, Instant::now());
    state.identifies += 1;
    let number = state.snowflakes.next();
    let name = format!("{number:032x}");
    let mut session = session;
    for message in std::mem::take(&mut state.before_ready) {
        session.dispatch("MESSAGE_CREATE", &message);
    }
    let here: Vec<&_> =
        state.guilds.iter().filter(|guild| !guild.is_left && session.receives(Some(guild.id))).collect();
    let unavailable: Vec<Value> =
        here.iter().map(|guild| json!({"id": guild.id.to_string(), "unavailable": true})).collect();
    session.dispatch(
        "READY",
        &json!({
            "v": 10, "user": state.users[&state.application_id].to_json(), "guilds": unavailable, "session_id": name,
            "resume_gateway_url": state.gateway_url, "session_type": "normal", "user_settings": {}, "relationships": [],
            "private_channels": [], "presences": [], "guild_join_requests": [], "geo_ordered_rtc_regions": [],
            "_trace": [], "shard": [shard.0, shard.1], "application": {"id": state.application_id.to_string(), "flags": 1 << 19},
        }),
    );
    for guild in here {
        session.dispatch("GUILD_CREATE", &state.guild_json(guild));
    }
    state.sessions.insert(name.clone(), session);
    if let Some(connection) = state.connections.get_mut(&id) {
        connection.session = Some(name);
    }
}

/// Sends op 9, after which the application waits and reconnects.
fn send_invalid_session(state: &mut State, id: u64, resumable: bool) {
    if let Some(connection) = state.connections.get_mut(&id) {
        connection.send_op(9, json!(resumable));
    }
}

fn resume(state: &mut State, id: u64, data: &Value) {
    if !has_valid_token(state, data) {
        return close_connection(state, id, 4004, "Authentication failed.");
    }
    if state.resumes_to_fail > 0 {
        state.resumes_to_fail -= 1;
        state.failed_resumes.push(Instant::now());
        return close_connection(state, id, 4000, "Unknown error.");
    }
    let name = data["session_id"].as_str().unwrap_or_default().to_owned();
    let Some(session) = state.sessions.get_mut(&name) else { return send_invalid_session(state, id, false) };
    let seq = match data["seq"].as_u64() {
        Some(seq) if seq <= session.seq => seq,
        _ => {
            state.sessions.remove(&name);
            return close_as_violation(state, id, 4007, "Invalid seq.");
        }
    };
    session.dispatch("RESUMED", &json!({"_trace": []}));
    let before = session.connection.replace(id);
    state.resumes += 1;
    if let Some(before) = before.and_then(|before| state.connections.get_mut(&before)) {
        *before = Connection { end: Some(ConnectionEnd::Reset), ..Connection::new() };
    }
    if let Some(connection) = state.connections.get_mut(&id) {
        (connection.session, connection.sent) = (Some(name), seq);
    }
}
