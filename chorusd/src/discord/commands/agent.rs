//! `/agent`.

use chorus_proto::methods::agent::{ConfigParams, DestroyParams, InitParams, ListParams};
use chorus_proto::{Agent, ErrorKind};
use serde_json::Value;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::id::{ChannelId, GuildId};
use uuid::Uuid;

use super::call::{Asker, Call};
use super::confirm::Deed;
use super::definitions::Right;
use super::reply::Reply;
use super::table::KEYS;
use super::words::{Clean as _, block, code, count, cut, plain, warnings};
use crate::failure::{Failure, Result};
use crate::ops::agent::room::NEW;
use crate::ops::agent::{config, destroy, init, list};
use crate::ops::select::meaning;

/// Makes an agent in this server.
pub async fn init(call: &Call) -> Result<Reply> {
    let (by, ops) = (&call.by, call.by.ops());
    let text = |name: &str| call.given.text(name).map(str::to_owned);
    let name = call.given.must("name")?.trim().to_owned();
    call.given.text("model").map_or(Ok(()), |model| by.knows_model(model))?;
    let params = InitParams {
        name,
        system_prompt: text("system_prompt"),
        model: text("model"),
        permissions: text("permissions"),
        idle_timeout: text("idle_timeout"),
    };
    let made = init::init_for(ops, params, &by.person.requester, Some(by.guild.get())).await;
    let made = ops.store.judged(made)?;
    let what = if made.revived { "is back" } else { "is there" };
    let place = match &made.agent.channel_id {
        Some(channel) => format!(": <#{channel}>"),
        None => ". It has no channel; `/agent config` with the value `new` for `channel_id` makes one".to_owned(),
    };
    let text = format!("The agent **{}** {what}{place}.", plain(by, &made.agent.name, 64));
    Ok(Reply::new(text + &warnings(by, &made.warnings)))
}

/// Asks whether an agent is to be taken away.
pub async fn destroy(call: &Call) -> Result<Reply> {
    let by = &call.by;
    let agent = by.agent(Some(call.given.must("name")?))?;
    let (id, keep_files) = (agent.facts.id, call.given.yes("keep_files"));
    let live = by.ops().registry.info(id).map_or_else(String::new, |info| {
        format!(" Its conversation of {} is saved first.", count(info.messages, "message"))
    });
    let files = if keep_files { "stays where it is" } else { "goes to the trash" };
    let name = plain(by, &agent.facts.name, 64);
    let text = format!("Take the agent **{name}** away?{live} Its directory {files}.");
    let bridge = &by.bridge;
    Ok(bridge.slash.asked.ask(bridge, &by.person.requester, Deed::Destroy { agent: id, keep_files }, text, "Destroy"))
}

/// Takes it away; it was confirmed.
pub async fn destroy_now(by: &Asker, agent: Uuid, keep_files: bool) -> Result<Reply> {
    by.may(Right::Channels)?;
    let ops = by.ops();
    let entry = ops.directory.by_id(agent).filter(|entry| by.is_here(entry));
    let entry = entry.ok_or_else(|| Failure::new(ErrorKind::AgentNotFound, "that agent is gone already"))?;
    by.note(&entry, "agent.destroy", Right::Channels).await?;
    let name = entry.facts.name.clone();
    let params = DestroyParams { name: name.clone(), keep_files, purge: false };
    let gone = meaning(agent, destroy::destroy(ops, params)).await;
    let gone = ops.store.judged(gone)?;
    let saved = gone.saved.map_or_else(String::new, |session| {
        format!(" Its conversation is saved as {}.", code(by, &session.header.session_id, 80))
    });
    let said = format!("The agent **{}** was taken away.{saved}", plain(by, &name, 64));
    let text = format!("{said}{}", warnings(by, &gone.warnings));
    let aloud = format!("{said} By {}.", plain(by, by.person.name(), 64));
    // Nobody hears it in a channel that goes with the agent.
    let own = entry.channel_id.as_deref() == Some(&*by.channel.to_string());
    Ok(Reply { aloud: (!own).then_some(aloud), ..Reply::new(text) })
}

/// The agents that whoever asks may see.
pub async fn list(call: &Call) -> Result<Reply> {
    let visible: Vec<Uuid> = call.by.visible().iter().map(|entry| entry.facts.id).collect();
    if visible.is_empty() {
        let hint = if call.by.person.rights.manage_channels { " `/agent init` makes one." } else { "" };
        return Ok(Reply::new(format!("There are no agents here.{hint}")));
    }
    let found = list::list(call.by.ops(), ListParams { all: false }).await?;
    let lines: Vec<String> = found
        .agents
        .iter()
        .filter(|agent| visible.contains(&agent.id))
        .map(|agent| format!("- {}", line(&call.by, agent)))
        .collect();
    Ok(Reply::new(lines.join("\n")))
}

/// An agent in a line.
pub fn line(by: &Asker, agent: &Agent) -> String {
    let mut parts = vec![format!("**{}**", plain(by, &agent.name, 64))];
    parts.extend(agent.channel_id.as_ref().map(|channel| format!("<#{channel}>")));
    parts.push(match &agent.context {
        Some(context) => format!("active, {}", count(context.messages, "message")),
        None => "idle".to_owned(),
    });
    parts.extend(agent.model.as_ref().map(|model| code(by, model, 100)));
    parts.push(agent.permissions.as_str().map_or_else(|| "a profile of its own".to_owned(), |name| code(by, name, 64)));
    parts.extend(agent.problem.as_ref().map(|problem| format!("⚠ {}", plain(by, problem, 200))));
    parts.join(" · ")
}

/// Shows or sets what an agent is.
pub async fn config(call: &Call) -> Result<Reply> {
    let (by, ops, given) = (&call.by, call.by.ops(), &call.given);
    let agent = by.agent(Some(given.must("name")?))?;
    let (id, name) = (agent.facts.id, agent.facts.name.clone());
    let key = given.text("key").map(str::to_owned);
    // Discord offers no others, and is not who says what may be looked at.
    if let Some(key) = key.as_deref().filter(|key| !KEYS.contains(key)) {
        return Err(Failure::new(ErrorKind::Denied, format!("{} is no key for a channel", cut(&by.clean(key), 80)))
            .hint(format!("at the terminal `chorusctl agent config {name}` has all of them")));
    }
    let value = match (given.text("value"), given.yes("reset")) {
        (Some(_), true) => return Err(Failure::invalid("`value` does not go with `reset`")),
        (value, reset) => value.map(str::to_owned).or_else(|| reset.then(String::new)),
    };
    let Some(key) = key else {
        if value.is_some() {
            return Err(Failure::invalid("no key was chosen to be set").hint("choose one with `key`"));
        }
        let params = ConfigParams { name: name.clone(), key: None, value: None };
        let all = meaning(id, config::config(ops, params)).await?.config;
        let all = all.iter().filter(|(key, _)| KEYS.contains(&key.as_str()));
        let lines: Vec<String> = all.map(|(key, value)| format!("{key}: {}", shown(value))).collect();
        return Ok(Reply::new(format!("**{}**\n{}", plain(by, &name, 64), block(by, &lines.join("\n")))));
    };
    let value = match value {
        Some(text) if key == "channel_id" => Some(channel(by, &text).await?),
        Some(text) if key == "model" && !text.is_empty() => by.knows_model(&text).map(|()| Some(text))?,
        value => value,
    };
    let params = ConfigParams { name: name.clone(), key: Some(key.clone()), value: value.clone().map(Value::from) };
    let done = meaning(id, config::config_by(ops, params, &by.person.requester)).await;
    let done = ops.store.judged(done)?;
    let now = done.config.get(&key).map(shown).unwrap_or_default();
    let (name, key) = (plain(by, &name, 64), code(by, &key, 64));
    if value.is_none() {
        return Ok(Reply::new(format!("**{name}**: {key}\n{}", block(by, &now))));
    }
    let was = done.old.as_ref().map_or_else(String::new, |old| format!(" It was {}.", code(by, &shown(old), 300)));
    Ok(Reply::new(format!("**{name}**: {key} is now {}.{was}", code(by, &now, 300))))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "(default)".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The id of a channel of this server; empty: none; `new`: one that is to be made.
async fn channel(by: &Asker, given: &str) -> Result<String> {
    #[derive(serde::Deserialize)]
    struct Found {
        guild_id: Option<GuildId>,
    }
    if given.is_empty() || given.trim() == NEW {
        return Ok(given.trim().to_owned());
    }
    let id = given.trim().trim_start_matches("<#").trim_end_matches('>').parse().ok().filter(|id| *id != 0);
    let id: u64 = id.ok_or_else(|| Failure::invalid("that is no channel").hint("give it as #name, or by its id"))?;
    let request = Request::new(Route::Channel { channel_id: ChannelId::new(id) }, LightMethod::Get);
    let elsewhere =
        || Failure::invalid("there is no such channel in this server").hint("give it as #name, or by its id");
    match by.bridge.rest.call::<Found>(request).await {
        Ok(found) if found.guild_id == Some(by.guild) => Ok(id.to_string()),
        Ok(_) => Err(elsewhere()),
        Err(error) if error.may_pass() => Err(error.into()),
        Err(_) => Err(elsewhere()),
    }
}
