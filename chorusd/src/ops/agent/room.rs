//! The channel of an agent in Discord, as far as verbs see to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_proto::methods::agent::ConfigResult;
use chorus_proto::{Agent, ErrorKind, EventType};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::config::set_keys;
use super::{entry, refresh_alone};
use crate::agent::directory::Entry;
use crate::config::agent::{AgentConfig, FILE, render};
use crate::failure::{Failure, Result};
use crate::ops::discord::channels::{self, ChannelRow};
use crate::ops::discord::{Face, Found, Made, Making, NewPost, State, outbox};
use crate::ops::{Ops, blocking, view};
use crate::store::agents_dir::write_private;
use crate::store::catalog::{AgentRow, Audit};

/// How long is waited for a channel to go.
const DELETING: Duration = Duration::from_secs(20);

/// The keys of agent.json that say which channel it is.
const KEYS: [&str; 2] = ["channel_id", "guild_id"];

/// Discord, where it is to be asked.
fn face(ops: &Ops) -> Option<&Arc<dyn Face>> {
    ops.discord.face.get()
}

/// What an agent that is about to be made has of Discord.
#[derive(Debug, Default)]
pub(super) struct Room {
    made: Option<Made>,
    /// What becomes of the keys of agent.json; empty: they stay.
    keys: Map<String, Value>,
    pub warnings: Vec<String>,
}

impl Room {
    /// Makes a channel, where Discord is connected and a kept directory (`dir`) does not name one that is still good.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn make(ops: &Ops, name: &str, prompt: Option<String>, guild: Option<u64>, dir: &Path) -> Result<Self> {
        let mut room = Self::default();
        if ops.discord.state() == State::Off {
            return Ok(room);
        }
        let file = dir.join(FILE);
        let kept: Map<String, Value> = blocking(move || {
            Ok(std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
        })
        .await?;
        let kept_channel = kept.get(KEYS[0]).and_then(Value::as_str).and_then(|id| id.parse::<u64>().ok());
        let Some(face) = face(ops) else {
            room.warnings.push(none_made("Chorus is not connected to Discord", name));
            return Ok(room);
        };
        if let Some(channel) = kept_channel {
            if ops.directory.by_channel(channel).is_none() {
                match face.find_channel(channel).await {
                    Ok(_) => return Ok(room),
                    Err(failure) => {
                        room.warnings.push(format!("the channel that it had is not taken up: {}", failure.message));
                    }
                }
            }
            room.keys = KEYS.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
        }
        let prompt = prompt.or_else(|| kept.get("system_prompt").and_then(Value::as_str).map(str::to_owned));
        match face.make_channel(name.to_owned(), prompt, guild).await? {
            Making::No(why) => room.warnings.push(none_made(&why, name)),
            Making::Made(made) => {
                room.keys = KEYS
                    .iter()
                    .zip([made.channel, made.guild])
                    .map(|(key, id)| ((*key).to_owned(), Value::String(id.to_string())))
                    .collect();
                room.made = Some(made);
            }
        }
        Ok(room)
    }

    /// What agent.json is to say of it.
    pub fn keys(&self) -> Map<String, Value> {
        self.keys.clone()
    }

    /// Adds the agent's row, with its channel and the welcome.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`; nothing was added then.
    pub async fn enrol(&self, ops: &Ops, dir: &str, config: &AgentConfig, row: AgentRow) -> Result<()> {
        let (Some(made), Some(face)) = (self.made, face(ops)) else { return ops.store.catalog.put_agent(row).await };
        let Made { channel, guild } = made;
        let channel = ChannelRow { channel, guild, agent: row.id, made: true, seen: channel, skipped: channel };
        let welcome = face.welcome(&entry(&ops.home, dir, config, row.stamp.clone()), made.channel)?;
        ops.store.catalog.put_agent_in(row, channel, welcome).await
    }

    /// The agent is there.
    pub fn open(&self, ops: &Ops, agent: &Entry) {
        let Some(face) = face(ops) else { return };
        match self.made {
            Some(made) => face.posted(made.channel),
            None => face.follow(agent.facts.id),
        }
    }

    /// The agent was not made after all.
    pub async fn undo(&self, ops: &Ops) {
        if let (Some(made), Some(face)) = (self.made, face(ops))
            && let Err(failure) = delete(&**face, made.channel).await
        {
            tracing::error!(channel = made.channel, %failure, "the channel of an agent that was not made is left in Discord");
        }
    }
}

/// Posts the first word about an agent in a channel that it was given.
pub async fn welcome(ops: &Ops, agent: &Entry, channel: u64) {
    if let Some(face) = face(ops) {
        post(ops, &**face, channel, face.welcome(agent, channel)).await;
    }
}

/// Says something in a channel.
async fn say(ops: &Ops, channel: u64, text: &str) {
    if let Some(face) = face(ops) {
        post(ops, &**face, channel, face.line(channel, text)).await;
    }
}

/// Keeps a post and has it sent. What cannot be kept is not said.
async fn post(ops: &Ops, face: &dyn Face, channel: u64, post: Result<NewPost>) {
    let kept = match post {
        Ok(post) => outbox::put(ops, vec![post]).await,
        Err(failure) => Err(failure),
    };
    match kept {
        Ok(()) => face.posted(channel),
        Err(failure) => tracing::warn!(channel, %failure, "a line about an agent is not posted in its channel"),
    }
}

async fn delete(face: &dyn Face, channel: u64) -> Result<()> {
    let deleted = timeout(DELETING, face.delete_channel(channel)).await;
    deleted.unwrap_or_else(|_| Err(Failure::new(ErrorKind::DiscordFailed, "Discord does not answer in time")))
}

fn none_made(why: &str, name: &str) -> String {
    format!("no channel was made in Discord: {why}; `chorusctl agent config {name} channel_id new` makes one later")
}

/// Deletes the channel of a destroyed agent where Chorus made it; another is left, and free. What a person should know of that.
pub(super) async fn leave(ops: &Ops, agent: &Entry, shown: &mut Agent, files: Option<&Path>) -> Vec<String> {
    let rows = match channels::of_agent(ops, agent.facts.id).await {
        Ok(rows) => rows,
        Err(failure) => return vec![format!("whether it has a channel in Discord cannot be told: {failure}")],
    };
    let mut warnings = Vec::new();
    let gone =
        format!("The agent **{}** was taken away. What is written here is not answered any more.", agent.facts.name);
    for row in rows {
        let proven = row.made && agent.channel() == Some(row.channel);
        if proven {
            let deleted = match face(ops) {
                None => Err(Failure::new(ErrorKind::DiscordFailed, "Chorus is not connected to Discord")),
                Some(face) => delete(&**face, row.channel).await,
            };
            if let Err(failure) = deleted {
                warnings.push(format!(
                    "its channel {} in Discord was not deleted: {}; delete it there",
                    row.channel, failure.message
                ));
                say(ops, row.channel, &gone).await;
                continue;
            }
            (shown.channel_id, shown.guild_id) = (None, None);
            if let Some(dir) = files
                && let Err(failure) = forget_in(ops, &agent.facts.name, dir).await
            {
                tracing::warn!(agent = %agent.facts.name, %failure, "the kept agent.json names a channel that is gone");
            }
        }
        if !proven && agent.channel() == Some(row.channel) {
            say(ops, row.channel, &gone).await;
        }
        if let Err(failure) = channels::remove(ops, row.channel).await {
            tracing::warn!(agent = %agent.facts.name, %failure, "a channel without an agent is still noted");
        }
    }
    warnings
}

/// Takes the channel out of the agent.json of an agent that is not there any more.
async fn forget_in(ops: &Ops, name: &str, dir: &Path) -> Result<()> {
    let _one_at_a_time = ops.agents_lock.lock().await;
    // Somebody may have taken the directory up again.
    if ops.directory.by_name(name).is_some() {
        return Ok(());
    }
    let file = dir.join(FILE);
    blocking(move || {
        let failed = |e: std::io::Error| Failure::io(format_args!("cannot change {}", file.display()), &e);
        let text = std::fs::read_to_string(&file).map_err(failed)?;
        let Ok(mut map) = serde_json::from_str::<Map<String, Value>>(&text) else { return Ok(()) };
        for key in KEYS {
            map.insert(key.to_owned(), Value::Null);
        }
        write_private(&file, render(&map).as_bytes()).map_err(failed)
    })
    .await
}

/// A channel that is to be an agent's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// `None`: none any more.
    channel: Option<u64>,
    /// `None`: nobody can tell now.
    found: Option<Found>,
    /// It was made for the agent just now.
    made: bool,
}

/// Says that a channel is to be made, where the number of one stands else.
pub const NEW: &str = "new";

/// Looks at the channel that an agent is to have, or makes it. For whoever does not hold the lock on agents: Discord may be slow.
///
/// # Errors
/// `invalid_params`, or why no agent can have it.
pub(super) async fn look(ops: &Ops, agent: &Entry, value: &Value) -> Result<Bound> {
    let unreadable = || {
        Failure::invalid("`channel_id` is the number of a channel")
            .hint("in Discord: Settings, Advanced, Developer Mode; then right-click the channel, Copy Channel ID; `new` makes one")
    };
    let text = match value {
        Value::Null => "",
        Value::String(text) => text.trim(),
        _ => return Err(unreadable()),
    };
    if text.is_empty() {
        return Ok(Bound { channel: None, found: None, made: false });
    }
    if text == NEW {
        return make(ops, agent).await;
    }
    let digits = text.strip_prefix("<#").and_then(|text| text.strip_suffix('>')).unwrap_or(text);
    let channel = digits.parse::<u64>().ok().filter(|id| *id != 0 && digits.bytes().all(|b| b.is_ascii_digit()));
    let channel = channel.ok_or_else(unreadable)?;
    let found = match face(ops) {
        Some(face) => face.find_channel(channel).await?,
        None => None,
    };
    Ok(Bound { channel: Some(channel), found, made: false })
}

/// Refuses an agent that has a channel.
fn has_none(agent: &Entry) -> Result<()> {
    let (name, Some(channel)) = (&agent.facts.name, agent.channel()) else { return Ok(()) };
    Err(Failure::new(ErrorKind::AlreadyExists, format!("{name} has the channel {channel}"))
        .hint(format!("`chorusctl agent config {name} channel_id \"\"` takes it away first")))
}

/// Makes a channel for an agent that has none.
async fn make(ops: &Ops, agent: &Entry) -> Result<Bound> {
    let name = &agent.facts.name;
    has_none(agent)?;
    let no = |why: &str| {
        Failure::new(ErrorKind::DiscordFailed, format!("no channel was made: {why}"))
            .hint("`chorusctl status` shows how the connection stands; a channel that is there is named by its id")
    };
    let face = face(ops).ok_or_else(|| no("Chorus is not connected to Discord"))?;
    let guild = agent.guild_id.as_ref().and_then(|guild| guild.parse().ok());
    let prompt = agent.facts.system_prompt.as_deref().map(str::to_owned);
    match face.make_channel(name.clone(), prompt, guild).await? {
        Making::No(why) => Err(no(&why)),
        Making::Made(Made { channel, guild }) => {
            Ok(Bound { channel: Some(channel), found: Some(Found { guild, newest: channel }), made: true })
        }
    }
}

impl Bound {
    /// It is not the agent's after all: one that was made for it goes.
    pub(super) async fn undo(self, ops: &Ops) {
        if let (true, Some(channel), Some(face)) = (self.made, self.channel, face(ops))
            && let Err(failure) = delete(&**face, channel).await
        {
            tracing::error!(channel, %failure, "a channel that was made for an agent is left in Discord");
        }
    }
}

/// The row of the audit log that says which channel somebody gave an agent.
pub(super) fn audited(bound: &Bound, row: Audit, agent: &Entry) -> Audit {
    Audit { old: agent.channel_id.clone(), new: bound.channel.map(|channel| channel.to_string()), ..row }
}

/// Gives the agent a channel that is there, or takes it from it. For whoever holds the lock on agents and has read the file again.
///
/// # Errors
/// `already_exists` where it is another's, or was made for an agent that has got one meanwhile; else as any setting.
pub(super) async fn bind(ops: &Ops, agent: &Arc<Entry>, bound: &Bound) -> Result<ConfigResult> {
    if bound.made {
        has_none(agent)?;
    }
    let other = bound.channel.and_then(|channel| ops.directory.by_channel(channel));
    if let Some(other) = other.filter(|other| other.facts.id != agent.facts.id) {
        return Err(Failure::new(ErrorKind::AlreadyExists, format!("that is the channel of {}", other.facts.name))
            .hint(format!("`chorusctl agent config {} channel_id \"\"` frees it", other.facts.name)));
    }
    let id = |id: Option<u64>| id.map_or(Value::Null, |id| Value::String(id.to_string()));
    let same = bound.channel == agent.channel();
    let guild = match bound.found {
        Some(found) => id(Some(found.guild)),
        // Its server stays: an agent without a channel is not everybody's.
        None if same || bound.channel.is_none() => agent.guild_id.clone().map_or(Value::Null, Value::String),
        None => Value::Null,
    };
    let pairs = vec![(KEYS[0], id(bound.channel)), (KEYS[1], guild)];
    let (new, config, old) = set_keys(ops, agent, pairs).await?;
    if let (Some(channel), Some(found), false) = (bound.channel, bound.found, same) {
        let Found { guild, newest } = found;
        let made = bound.made;
        let row = ChannelRow { channel, guild, agent: agent.facts.id, made, seen: newest, skipped: newest };
        match channels::put(ops, row).await {
            Ok(()) => welcome(ops, &new, channel).await,
            Err(failure) => {
                tracing::warn!(agent = %agent.facts.name, %failure, "how far its channel was read is not noted yet");
            }
        }
    }
    if let Some(before) = agent.channel().filter(|_| !same) {
        let left =
            format!("**{}** has left this channel. What is written here is not answered any more.", agent.facts.name);
        say(ops, before, &left).await;
    }
    if let Some(face) = face(ops) {
        face.follow(agent.facts.id);
    }
    let shown = KEYS.iter().map(|key| ((*key).to_owned(), config.map().get(*key).cloned().unwrap_or_default()));
    Ok(ConfigResult { agent: view::changed(ops, &new).await, config: shown.take(1).collect(), old: Some(old) })
}

/// The channel of an agent is gone: it goes on without one. Answers whose it was.
///
/// # Errors
/// As any setting.
pub async fn detach(ops: &Ops, channel: u64) -> Result<Option<String>> {
    let _one_at_a_time = ops.agents_lock.lock().await;
    let mut whose = None;
    if let Some(agent) = ops.directory.by_channel(channel) {
        let agent = refresh_alone(ops, agent).await?;
        if agent.channel() == Some(channel) {
            let name = agent.facts.name.clone();
            // Its server stays: an agent without a channel is not everybody's.
            set_keys(ops, &agent, vec![(KEYS[0], Value::Null)]).await?;
            tracing::warn!(agent = %name, channel, "its channel in Discord is gone; the agent goes on without one");
            let text = format!(
                "The channel of {name} in Discord is gone. The agent goes on without one; \
                 `chorusctl agent config {name} channel_id new` makes another."
            );
            ops.registry.tell(EventType::Notice, Some(name.clone()), json!({"text": text}));
            whose = Some(name);
        }
    }
    channels::remove(ops, channel).await?;
    Ok(whose)
}

/// Notes the server that an agent's channel is in, where agent.json says another or none.
///
/// # Errors
/// As any setting.
pub async fn settle_in(ops: &Ops, channel: u64, guild: u64) -> Result<()> {
    let guild = guild.to_string();
    let differs = |agent: &Arc<Entry>| agent.guild_id.as_ref() != Some(&guild);
    if !ops.directory.by_channel(channel).is_some_and(|agent| differs(&agent)) {
        return Ok(());
    }
    let _one_at_a_time = ops.agents_lock.lock().await;
    let Some(agent) = ops.directory.by_channel(channel) else { return Ok(()) };
    let agent = refresh_alone(ops, agent).await?;
    if agent.channel() != Some(channel) || !differs(&agent) {
        return Ok(());
    }
    set_keys(ops, &agent, vec![(KEYS[1], Value::String(guild))]).await.map(drop)
}

/// The agent has this name now: so does a channel that Chorus made for it.
pub(super) async fn rename(ops: &Ops, agent: &Entry) {
    let (Some(face), Some(channel)) = (face(ops), agent.channel()) else { return };
    match channels::get(ops, channel).await {
        Ok(Some(row)) if row.made && row.agent == agent.facts.id => {
            face.rename_channel(channel, agent.facts.name.clone());
        }
        Ok(_) => {}
        Err(failure) => tracing::warn!(agent = %agent.facts.name, %failure, "its channel keeps its name"),
    }
}

/// agent.json may name another channel than before.
pub fn follow(ops: &Ops, before: Option<&Entry>, now: &Entry) {
    if before.is_none_or(|before| before.channel() != now.channel())
        && let Some(face) = face(ops)
    {
        face.follow(now.facts.id);
    }
}
