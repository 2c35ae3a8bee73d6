//! The first answer to an interaction.

use std::time::Instant;

use serde_json::{Value, json};

use super::messages::{files, rewrite, sizes, written};
use super::{Reply, object};
use crate::discord::http::{Answer, Recorded};
use crate::discord::messages::{EPHEMERAL, LOADING, Message};
use crate::discord::refusal::{Errors, Refusal};
use crate::discord::rules;
use crate::discord::rules::messages::{Kind, check};
use crate::discord::state::{Interaction, State};

pub fn callback(state: &mut State, id: u64, token: &str, asked: &Recorded) -> Reply {
    let unknown = Refusal::new(404, 10_062, "Unknown interaction");
    let Some(interaction) = state.interactions.get(&id).filter(|known| known.token == token).cloned() else {
        return Err(unknown);
    };
    if interaction.callback.is_some() {
        return Err(Refusal::mistake(400, 40_060, "Interaction has already been acknowledged."));
    }
    if interaction.at.elapsed() > state.patience {
        return Err(Refusal { mistake: interaction.heard, ..unknown });
    }
    let body = object(&asked.body)?;
    let kind = form(body, interaction.kind)?;
    let data = &body["data"];
    let made = match kind {
        4 => {
            check(data, "data", Kind::Callback, &sizes(asked))?;
            let message = written(state, interaction.channel, data, asked)?;
            Some(post(state, &interaction, message))
        }
        5 => {
            let mut message = Message::new(state.flakes.next(), interaction.channel, state.app, "");
            message.flags = LOADING | data["flags"].as_u64().unwrap_or(0) & EPHEMERAL;
            Some(post(state, &interaction, message))
        }
        7 => {
            check(data, "data", Kind::Callback, &sizes(asked))?;
            let new = files(state, asked);
            let changed = interaction.message.ok_or_else(Refusal::unknown_message)?;
            state.edit(changed, |message| rewrite(message, data, new));
            Some(changed)
        }
        8 => {
            rules::commands::completion(data)?;
            None
        }
        _ => interaction.message,
    };
    if let Some(known) = state.interactions.get_mut(&id) {
        known.callback = Some((kind, Instant::now()));
        known.original = made;
        known.choices = data.get("choices").cloned();
        if matches!(kind, 4 | 7) {
            known.answered.extend(made);
        }
    }
    if asked.param("with_response") != Some("true") {
        return Ok(Answer::nothing());
    }
    let message = made.and_then(|id| state.messages.get(&id)).map(|message| state.message_json(message, false));
    Ok(Answer::json(
        200,
        &json!({
            "interaction": {"id": id.to_string(), "type": interaction.kind, "response_message_id": made.map(|id| id.to_string())},
            "resource": {"type": kind, "message": message},
        }),
    ))
}

/// The kind of an answer, which must be one for this kind of interaction.
fn form(body: &Value, asked: u64) -> Result<u64, Refusal> {
    let mut errors = Errors::default();
    rules::fields::Fields::of(body, "", &["type", "data"], &mut errors);
    let fits: &[u64] = match asked {
        2 => &[4, 5],
        3 => &[4, 5, 6, 7],
        _ => &[8],
    };
    let kind = body["type"].as_u64().unwrap_or(0);
    if !fits.contains(&kind) {
        errors.add("type", "BASE_TYPE_CHOICES", format!("Value must be one of {fits:?}."));
    }
    errors.done().map(|()| kind)
}

/// Puts an answer into the channel; who alone sees it is in its flags.
pub fn post(state: &mut State, interaction: &Interaction, mut message: Message) -> u64 {
    message.webhook = Some(state.app);
    message.interaction = Some(interaction.metadata.clone());
    message.only = (message.flags & EPHEMERAL != 0).then_some(interaction.user);
    // The answer to a command is of its own kind; what a button brings is a reply.
    message.kind = if interaction.kind == 2 { 20 } else { 19 };
    message.reply_to = interaction.message.filter(|_| interaction.kind == 3);
    state.post(message)
}
