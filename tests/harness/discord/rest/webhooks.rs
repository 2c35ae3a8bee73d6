//! Later answers to an interaction.

use std::time::Duration;

use super::interactions::post;
use super::messages::{files, rewrite, sizes, written};
use super::{Reply, number, object};
use crate::discord::http::{Answer, Recorded};
use crate::discord::messages::{EPHEMERAL, LOADING};
use crate::discord::refusal::Refusal;
use crate::discord::rules::messages::{Kind, check};
use crate::discord::state::{Interaction, State};

/// How long the token of an interaction is good.
const TOKEN: Duration = Duration::from_secs(15 * 60);

fn known(state: &State, app: u64, token: &str) -> Result<Interaction, Refusal> {
    if app != state.app {
        return Err(Refusal::unknown_webhook());
    }
    let known = state.interactions.values().find(|interaction| interaction.token == token);
    let known = known.ok_or_else(Refusal::unknown_webhook)?;
    if known.at.elapsed() > TOKEN {
        return Err(Refusal::new(401, 50_027, "Invalid Webhook Token"));
    }
    // Before the first answer there is nothing that could be changed or followed.
    if known.callback.is_none() {
        return Err(Refusal::mistake(404, 10_015, "Unknown Webhook"));
    }
    Ok(known.clone())
}

/// The number of a message: of an answer to this interaction.
fn find(state: &State, interaction: &Interaction, id: &str) -> Result<u64, Refusal> {
    let id = if id == "@original" { interaction.original.ok_or_else(Refusal::unknown_message)? } else { number(id)? };
    let own = interaction.original == Some(id) || interaction.answered.contains(&id);
    if own && state.messages.contains_key(&id) { Ok(id) } else { Err(Refusal::unknown_message()) }
}

fn answered(state: &mut State, interaction: u64, message: u64) {
    if let Some(interaction) = state.interactions.get_mut(&interaction)
        && !interaction.answered.contains(&message)
    {
        interaction.answered.push(message);
    }
}

pub fn get(state: &State, app: u64, token: &str, id: &str) -> Reply {
    let id = find(state, &known(state, app, token)?, id)?;
    Ok(Answer::json(200, &state.message_json(&state.messages[&id], false)))
}

pub fn create(state: &mut State, app: u64, token: &str, asked: &Recorded) -> Reply {
    let interaction = known(state, app, token)?;
    let body = object(&asked.body)?;
    check(body, "", Kind::Followup, &sizes(asked))?;
    // While the first answer is still awaited, this becomes it, seen by whoever was to see that.
    let waiting = interaction.original.filter(|id| state.messages.get(id).is_some_and(|own| own.flags & LOADING != 0));
    let id = match waiting {
        Some(id) => {
            fill(state, id, asked)?;
            id
        }
        None => {
            let message = written(state, interaction.channel, body, asked)?;
            post(state, &interaction, message)
        }
    };
    answered(state, interaction.id, id);
    Ok(Answer::json(200, &state.message_json(&state.messages[&id], false)))
}

/// Gives a message what the body says.
fn fill(state: &mut State, id: u64, asked: &Recorded) -> Result<(), Refusal> {
    let new = files(state, asked);
    let mut after = state.messages.get(&id).cloned().ok_or_else(Refusal::unknown_message)?;
    rewrite(&mut after, &asked.body, new);
    after.flags &= !LOADING;
    if after.is_empty() {
        return Err(Refusal::mistake(400, 50_006, "Cannot send an empty message"));
    }
    debug_assert_eq!(after.only.is_some(), after.flags & EPHEMERAL != 0);
    state.edit(id, |message| *message = after);
    Ok(())
}

pub fn edit(state: &mut State, app: u64, token: &str, id: &str, asked: &Recorded) -> Reply {
    let interaction = known(state, app, token)?;
    let id = find(state, &interaction, id)?;
    check(object(&asked.body)?, "", Kind::EditAnswer, &sizes(asked))?;
    fill(state, id, asked)?;
    answered(state, interaction.id, id);
    Ok(Answer::json(200, &state.message_json(&state.messages[&id], false)))
}

pub fn delete(state: &mut State, app: u64, token: &str, id: &str) -> Reply {
    let id = find(state, &known(state, app, token)?, id)?;
    state.delete(id);
    Ok(Answer::nothing())
}
