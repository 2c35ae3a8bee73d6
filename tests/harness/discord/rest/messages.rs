//! Messages of channels.

use serde_json::Value;

use super::channels::allowed;
use super::{Reply, object};
use crate::discord::http::{Answer, Recorded};
use crate::discord::messages::{File, Message};
use crate::discord::permissions::{
    ATTACH_FILES, MANAGE_MESSAGES, MENTION_EVERYONE, READ_MESSAGE_HISTORY, SEND_MESSAGES, SEND_MESSAGES_IN_THREADS,
};
use crate::discord::refusal::Refusal;
use crate::discord::rules::messages::{Kind, check};
use crate::discord::state::State;
use crate::discord::world::{TEXT, THREAD};

/// The most messages of a page.
const PAGE: usize = 100;

pub fn typing(state: &State, channel: u64) -> Reply {
    allowed(state, channel, SEND_MESSAGES)?;
    Ok(Answer::nothing())
}

/// A page, newest first.
pub fn list(state: &State, channel: u64, asked: &Recorded) -> Reply {
    allowed(state, channel, 0)?;
    let param = |name: &str| asked.param(name).and_then(|value| value.parse::<u64>().ok());
    let limit = match asked.param("limit").map(str::parse) {
        None => 50,
        Some(Ok(limit @ 1..=PAGE)) => limit,
        Some(_) => {
            let mut errors = crate::discord::refusal::Errors::default();
            errors.add("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.");
            errors.done()?;
            50
        }
    };
    // Without the right to read what was, a page is empty.
    let may_read = state.permissions(channel, state.app) & READ_MESSAGE_HISTORY != 0;
    let all = state.messages_of(channel).filter(|_| may_read);
    let mut page: Vec<&Message> = match (param("after"), param("before")) {
        // Those right behind it, not the newest of all.
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
    Ok(Answer::json(200, &page.into()))
}

pub fn get(state: &State, channel: u64, id: u64) -> Reply {
    allowed(state, channel, READ_MESSAGE_HISTORY)?;
    Ok(Answer::json(200, &state.message_json(find(state, channel, id)?, false)))
}

fn find(state: &State, channel: u64, id: u64) -> Result<&Message, Refusal> {
    let found = state.messages.get(&id).filter(|message| message.channel == channel && message.only.is_none());
    found.ok_or_else(Refusal::unknown_message)
}

/// The files of a request, with numbers of their own.
pub fn files(state: &mut State, asked: &Recorded) -> Vec<File> {
    asked.files.iter().map(|file| File { id: state.flakes.next(), ..file.clone() }).collect()
}

pub fn sizes(asked: &Recorded) -> Vec<usize> {
    asked.files.iter().map(|file| file.bytes.len()).collect()
}

/// A new message out of a body; whom it calls is what the body allows.
pub fn written(state: &mut State, channel: u64, body: &Value, asked: &Recorded) -> Result<Message, Refusal> {
    // Discord takes the space around a text away.
    let content = body["content"].as_str().unwrap_or_default().trim();
    let mut message = Message::new(state.flakes.next(), channel, state.app, content);
    message.embeds =
        body.get("embeds").filter(|embeds| embeds.is_array()).cloned().unwrap_or_else(|| Value::Array(vec![]));
    message.components =
        body.get("components").filter(|rows| rows.is_array()).cloned().unwrap_or_else(|| Value::Array(vec![]));
    message.files = files(state, asked);
    message.flags = body["flags"].as_u64().unwrap_or(0);
    let parse = body["allowed_mentions"].get("parse").and_then(Value::as_array);
    let everyone = content.contains("@everyone") || content.contains("@here");
    let may_call = state.permissions(channel, state.app) & MENTION_EVERYONE != 0;
    message.mention_everyone = everyone && may_call && parse.is_none_or(|parse| parse.contains(&"everyone".into()));
    if message.is_empty() {
        return Err(Refusal::mistake(400, 50_006, "Cannot send an empty message"));
    }
    Ok(message)
}

pub fn create(state: &mut State, channel: u64, asked: &Recorded) -> Reply {
    let body = object(&asked.body)?;
    let thread = state.channels.get(&channel).is_some_and(|channel| channel.kind == THREAD);
    let say = if thread { SEND_MESSAGES_IN_THREADS } else { SEND_MESSAGES };
    let needed = say | if asked.files.is_empty() { 0 } else { ATTACH_FILES };
    if ![TEXT, THREAD].contains(&allowed(state, channel, needed)?.kind) {
        return Err(Refusal::mistake(400, 50_008, "Cannot send messages in a non-text channel"));
    }
    check(body, "", Kind::Create, &sizes(asked))?;
    let nonce = body.get("nonce").cloned();
    if let Some(known) = same_nonce(state, nonce.as_ref()) {
        return Ok(Answer::json(200, &state.message_json(&state.messages[&known], false)));
    }
    let mut message = written(state, channel, body, asked)?;
    message.nonce = nonce;
    let reference = &body["message_reference"];
    let original = reference["message_id"].as_str().and_then(|id| id.parse().ok()).or(reference["message_id"].as_u64());
    if let Some(original) = original {
        if state.permissions(channel, state.app) & READ_MESSAGE_HISTORY == 0 {
            return Err(Refusal::new(400, 160_002, "Cannot reply without permission to read message history"));
        }
        if find(state, channel, original).is_ok() {
            (message.reply_to, message.kind) = (Some(original), 19);
        } else if reference["fail_if_not_exists"] != false {
            let mut errors = crate::discord::refusal::Errors::default();
            errors.add("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message");
            errors.done().map_err(|refusal| Refusal { mistake: false, ..refusal })?;
        }
    }
    let id = state.post(message);
    Ok(Answer::json(200, &state.message_json(&state.messages[&id], false)))
}

/// The message that was made with this nonce a short while ago.
fn same_nonce(state: &State, nonce: Option<&Value>) -> Option<u64> {
    let nonce = nonce?;
    let window = jiff::SignedDuration::try_from(state.nonce_window).ok()?;
    let since = jiff::Timestamp::now() - window;
    let mut own = state.messages.values().rev().filter(|message| message.author == state.app && message.at >= since);
    own.find(|message| message.nonce.as_ref() == Some(nonce)).map(|message| message.id)
}

/// Makes of a message what the body says; files are those that it keeps and the new ones.
pub fn rewrite(message: &mut Message, body: &Value, new: Vec<File>) {
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

pub fn edit(state: &mut State, channel: u64, id: u64, asked: &Recorded) -> Reply {
    let body = object(&asked.body)?;
    allowed(state, channel, 0)?;
    let message = find(state, channel, id)?;
    if message.author != state.app {
        return Err(Refusal::mistake(403, 50_005, "Cannot edit a message authored by another user"));
    }
    check(body, "", Kind::Edit, &sizes(asked))?;
    let new = files(state, asked);
    let mut after = find(state, channel, id)?.clone();
    rewrite(&mut after, body, new);
    if after.is_empty() {
        return Err(Refusal::mistake(400, 50_006, "Cannot send an empty message"));
    }
    state.edit(id, |message| *message = after);
    Ok(Answer::json(200, &state.message_json(&state.messages[&id], false)))
}

pub fn delete(state: &mut State, channel: u64, id: u64) -> Reply {
    let own = {
        allowed(state, channel, 0)?;
        find(state, channel, id)?.author == state.app
    };
    if !own {
        allowed(state, channel, MANAGE_MESSAGES)?;
    }
    state.delete(id);
    Ok(Answer::nothing())
}
