//! The Discord channel of an agent, as far as operations create, bind or delete it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::write_private;
use chorus_catalog::discord::{ChannelTable, DiscordTables, OutboxTable};
use chorus_catalog::{AgentRow, AuditDecision};
use chorus_config::agent::{AGENT_FILE, AgentConfig, render};
use chorus_proto::methods::agent::ConfigResult;
use chorus_proto::{Agent, ErrorKind, EventType};
use chorus_runtime::run_blocking;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{AgentEditor, AgentResolver, agent_entry};
use crate::agent::agent_index::AgentEntry;
use crate::ops::discord::{
    ChannelApi, ChannelInfo, ChannelRow, ConnectionState, CreateOutcome, CreatedChannel, DiscordHandle, NewPost,
};

/// The time limit for deleting a channel.
const DELETE_TIMEOUT: Duration = Duration::from_secs(20);

/// The keys of agent.json that name the channel and its server.
const CHANNEL_KEYS: [&str; 2] = ["channel_id", "guild_id"];

/// Returns the channel API, if Discord is connected.
fn channel_api(discord: &DiscordHandle) -> Option<&Arc<dyn ChannelApi>> {
    discord.channel_api.get()
}

/// The channel of an agent that is about to be created.
#[derive(Debug, Default)]
pub(super) struct NewAgentChannel {
    created: Option<CreatedChannel>,
    /// New values of the channel keys in agent.json; empty if they stay.
    keys: Map<String, Value>,
    pub warnings: Vec<String>,
}

impl NewAgentChannel {
    /// Creates a channel if Discord is connected, unless the kept directory `dir` names one that is still usable.
    /// Returns Discord's errors.
    pub(super) async fn create(
        agents: &AgentResolver,
        name: &str,
        prompt: Option<String>,
        guild: Option<u64>,
        dir: &Path,
    ) -> Result<Self> {
        let mut new_channel = Self::default();
        if agents.discord.state() == ConnectionState::Off {
            return Ok(new_channel);
        }
        let file = dir.join(AGENT_FILE);
        let kept_config: Map<String, Value> = run_blocking(move || {
            Ok(std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
        })
        .await?;
        let kept_channel =
            kept_config.get(CHANNEL_KEYS[0]).and_then(Value::as_str).and_then(|id| id.parse::<u64>().ok());
        let Some(face) = channel_api(&agents.discord) else {
            new_channel.warnings.push(not_created_warning("Chorus is not connected to Discord", name));
            return Ok(new_channel);
        };
        if let Some(channel) = kept_channel {
            if agents.index.by_channel(channel).is_none() {
                match face.find_channel(channel).await {
                    Ok(_) => return Ok(new_channel),
                    Err(failure) => {
                        new_channel
                            .warnings
                            .push(format!("cannot reconnect its previous channel: {}", failure.message));
                    }
                }
            }
            new_channel.keys = CHANNEL_KEYS.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
        }
        let prompt = prompt.or_else(|| kept_config.get("system_prompt").and_then(Value::as_str).map(str::to_owned));
        match face.create_channel(name.to_owned(), prompt, guild).await? {
            CreateOutcome::Skipped(why) => new_channel.warnings.push(not_created_warning(&why, name)),
            CreateOutcome::Created(made) => {
                new_channel.keys = CHANNEL_KEYS
                    .iter()
                    .zip([made.channel, made.guild])
                    .map(|(key, id)| ((*key).to_owned(), Value::String(id.to_string())))
                    .collect();
                new_channel.created = Some(made);
            }
        }
        Ok(new_channel)
    }

    /// Returns the values that agent.json must get.
    pub(super) fn keys(&self) -> Map<String, Value> {
        self.keys.clone()
    }

    /// Adds the agent's row, together with its channel and the welcome post.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`; nothing was added then.
    pub(super) async fn register_agent(
        &self,
        agents: &AgentResolver,
        tables: &DiscordTables,
        dir: &str,
        config: &AgentConfig,
        row: AgentRow,
    ) -> Result<()> {
        let (Some(made), Some(face)) = (self.created, channel_api(&agents.discord)) else {
            return agents.table.upsert(row).await;
        };
        let CreatedChannel { channel, guild } = made;
        let channel = ChannelRow {
            channel,
            guild,
            agent: row.id,
            created_by_us: true,
            seen: channel,
            skipped: channel,
            parent: None,
            user: None,
        };
        let welcome = face.welcome_post(&agent_entry(&agents.home, dir, config, row.stamp.clone()), made.channel)?;
        tables.channels.upsert_with_agent(row, channel, welcome).await
    }

    /// Is called when the agent exists: sends the welcome post, or syncs the kept channel.
    pub(super) fn on_agent_created(&self, discord: &DiscordHandle, agent: &AgentEntry) {
        let Some(face) = channel_api(discord) else { return };
        match self.created {
            Some(made) => face.wake_outbox(made.channel),
            None => face.sync_agent_channel(agent.settings.id),
        }
    }

    /// Deletes the channel if the agent was not created after all.
    pub(super) async fn delete_if_created(&self, discord: &DiscordHandle) {
        if let (Some(made), Some(face)) = (self.created, channel_api(discord))
            && let Err(failure) = delete_channel(&**face, made.channel).await
        {
            tracing::error!(channel = made.channel, %failure, "a channel remains in Discord: its agent was not created");
        }
    }
}

/// Posts the welcome in a channel that an agent was given.
pub async fn post_welcome(editor: &AgentEditor, agent: &AgentEntry, channel: u64) {
    if let Some(face) = channel_api(&editor.agents.discord) {
        enqueue_post(&editor.store.catalog.discord.outbox, &**face, channel, face.welcome_post(agent, channel)).await;
    }
}

/// Posts a line in a channel.
async fn post_line(discord: &DiscordHandle, outbox: &Arc<dyn OutboxTable>, channel: u64, text: &str) {
    if let Some(face) = channel_api(discord) {
        enqueue_post(outbox, &**face, channel, face.line_post(channel, text)).await;
    }
}

/// Stores a post in the outbox and has it sent. A post that cannot be stored is only logged.
async fn enqueue_post(outbox: &Arc<dyn OutboxTable>, face: &dyn ChannelApi, channel: u64, post: Result<NewPost>) {
    let enqueued = match post {
        Ok(post) => outbox.enqueue(vec![post]).await,
        Err(failure) => Err(failure),
    };
    match enqueued {
        Ok(()) => face.wake_outbox(channel),
        Err(failure) => tracing::warn!(channel, %failure, "cannot post a notice in the agent's channel"),
    }
}

async fn delete_channel(face: &dyn ChannelApi, channel: u64) -> Result<()> {
    let deleted = timeout(DELETE_TIMEOUT, face.delete_channel(channel)).await;
    deleted.unwrap_or_else(|_| Err(Error::new(ErrorKind::DiscordFailed, "Discord did not respond in time")))
}

fn not_created_warning(why: &str, name: &str) -> String {
    format!("no Discord channel was created: {why}; create one later: chorusctl agent config {name} channel_id new")
}

/// Deletes the channel of a destroyed agent if Chorus created it; otherwise only unbinds it. Returns warnings.
pub(super) async fn leave_channels(
    agents: &AgentResolver,
    tables: &DiscordTables,
    agent: &AgentEntry,
    description: &mut Agent,
    files: Option<&Path>,
) -> Vec<String> {
    let rows = match tables.channels.list(Some(agent.settings.id)).await {
        Ok(rows) => rows,
        Err(failure) => return vec![format!("cannot check if it has a Discord channel: {failure}")],
    };
    let mut warnings = Vec::new();
    let farewell =
        format!("Agent **{}** was deleted. Messages in this channel are no longer answered.", agent.settings.name);
    for row in rows {
        let proven = row.created_by_us && agent.channel() == Some(row.channel);
        if proven {
            let deleted = match channel_api(&agents.discord) {
                None => Err(Error::new(ErrorKind::DiscordFailed, "Chorus is not connected to Discord")),
                Some(face) => delete_channel(&**face, row.channel).await,
            };
            if let Err(failure) = deleted {
                warnings.push(format!(
                    "its Discord channel {} was not deleted: {}; delete it in Discord",
                    row.channel, failure.message
                ));
                post_line(&agents.discord, &tables.outbox, row.channel, &farewell).await;
                continue;
            }
            (description.channel_id, description.guild_id) = (None, None);
            if let Some(dir) = files
                && let Err(failure) = clear_channel_keys(agents, &agent.settings.name, dir).await
            {
                tracing::warn!(agent = %agent.settings.name, %failure, "the kept agent.json names a channel that no longer exists");
            }
        }
        if !proven && agent.channel() == Some(row.channel) {
            post_line(&agents.discord, &tables.outbox, row.channel, &farewell).await;
        }
        if let Err(failure) = tables.channels.delete(row.channel).await {
            tracing::warn!(agent = %agent.settings.name, %failure, "cannot forget a channel whose agent was deleted");
        }
    }
    warnings
}

/// Removes the channel from the agent.json of an agent that does not exist any more.
async fn clear_channel_keys(agents: &AgentResolver, name: &str, dir: &Path) -> Result<()> {
    let _one_at_a_time = agents.lock.lock().await;
    // The directory may have been revived since.
    if agents.index.by_name(name).is_some() {
        return Ok(());
    }
    let file = dir.join(AGENT_FILE);
    run_blocking(move || {
        let failed = |e: std::io::Error| Error::io(format_args!("cannot change {}", file.display()), &e);
        let text = std::fs::read_to_string(&file).map_err(failed)?;
        let Ok(mut map) = serde_json::from_str::<Map<String, Value>>(&text) else { return Ok(()) };
        for key in CHANNEL_KEYS {
            map.insert(key.to_owned(), Value::Null);
        }
        write_private(&file, render(&map).as_bytes()).map_err(failed)
    })
    .await
}

/// A channel that an agent is to get.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChannelBinding {
    /// `None` removes the agent's channel.
    channel: Option<u64>,
    /// `None` if Discord is not connected, so that nothing is known.
    info: Option<ChannelInfo>,
    /// True if the channel was just created for the agent.
    is_new: bool,
}

/// The value of `channel_id` that creates a channel.
pub const NEW_CHANNEL: &str = "new";

/// Checks the channel that an agent is to get, or creates it. The caller must not hold the agents lock, because Discord
/// may be slow.
///
/// # Errors
/// `invalid_params`, or the reason why no agent can have the channel.
pub(super) async fn resolve_binding(
    discord: &DiscordHandle,
    agent: &AgentEntry,
    value: &Value,
) -> Result<ChannelBinding> {
    let unreadable = || {
        Error::invalid("`channel_id` must be a channel ID").hint(
            "in Discord, enable Settings > Advanced > Developer Mode, then right-click the channel and \
             choose Copy Channel ID; `new` creates a channel",
        )
    };
    let text = match value {
        Value::Null => "",
        Value::String(text) => text.trim(),
        _ => return Err(unreadable()),
    };
    if text.is_empty() {
        return Ok(ChannelBinding { channel: None, info: None, is_new: false });
    }
    if text == NEW_CHANNEL {
        return create_binding(discord, agent).await;
    }
    let digits = text.strip_prefix("<#").and_then(|text| text.strip_suffix('>')).unwrap_or(text);
    let channel = digits.parse::<u64>().ok().filter(|id| *id != 0 && digits.bytes().all(|b| b.is_ascii_digit()));
    let channel = channel.ok_or_else(unreadable)?;
    let found = match channel_api(discord) {
        Some(face) => face.find_channel(channel).await?,
        None => None,
    };
    Ok(ChannelBinding { channel: Some(channel), info: found, is_new: false })
}

/// Refuses an agent that has a channel.
fn ensure_no_channel(agent: &AgentEntry) -> Result<()> {
    let (name, Some(channel)) = (&agent.settings.name, agent.channel()) else { return Ok(()) };
    Err(Error::new(ErrorKind::AlreadyExists, format!("{name} already has channel {channel}"))
        .hint(format!("remove it first: chorusctl agent config {name} channel_id \"\"")))
}

/// Creates a channel for an agent that has none.
async fn create_binding(discord: &DiscordHandle, agent: &AgentEntry) -> Result<ChannelBinding> {
    let name = &agent.settings.name;
    ensure_no_channel(agent)?;
    let no = |why: &str| {
        Error::new(ErrorKind::DiscordFailed, format!("no channel was created: {why}"))
            .hint("check the connection with `chorusctl status`, or pass the ID of an existing channel")
    };
    let face = channel_api(discord).ok_or_else(|| no("Chorus is not connected to Discord"))?;
    let guild = agent.guild_id.as_ref().and_then(|guild| guild.parse().ok());
    let prompt = agent.settings.system_prompt.as_deref().map(str::to_owned);
    match face.create_channel(name.clone(), prompt, guild).await? {
        CreateOutcome::Skipped(why) => Err(no(&why)),
        CreateOutcome::Created(CreatedChannel { channel, guild }) => Ok(ChannelBinding {
            channel: Some(channel),
            info: Some(ChannelInfo { guild, newest_message: channel }),
            is_new: true,
        }),
    }
}

impl ChannelBinding {
    /// Deletes the channel if it was created for the agent and is not used after all.
    pub(super) async fn delete_if_new(self, discord: &DiscordHandle) {
        if let (true, Some(channel), Some(face)) = (self.is_new, self.channel, channel_api(discord))
            && let Err(failure) = delete_channel(&**face, channel).await
        {
            tracing::error!(channel, %failure, "a channel created for an agent remains in Discord");
        }
    }
}

/// Builds the audit row for the channel that an agent gets.
pub(super) fn audit_row_of_binding(bound: &ChannelBinding, row: AuditDecision, agent: &AgentEntry) -> AuditDecision {
    AuditDecision { old: agent.channel_id.clone(), new: bound.channel.map(|channel| channel.to_string()), ..row }
}

/// Binds the agent to a channel, or removes its channel. The caller must hold the agents lock and have reloaded
/// agent.json.
///
/// # Errors
/// `already_exists` if the channel belongs to another agent, or was created for one that has got another meanwhile;
/// otherwise as for any key.
pub(super) async fn bind_channel(
    editor: &AgentEditor,
    agent: &Arc<AgentEntry>,
    bound: &ChannelBinding,
) -> Result<ConfigResult> {
    if bound.is_new {
        ensure_no_channel(agent)?;
    }
    let (discord, tables) = (&editor.agents.discord, &editor.store.catalog.discord);
    let other = bound.channel.and_then(|channel| editor.agents.index.by_channel(channel));
    if let Some(other) = other.filter(|other| other.settings.id != agent.settings.id) {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("the channel belongs to {}", other.settings.name))
            .hint(format!("release it: chorusctl agent config {} channel_id \"\"", other.settings.name)));
    }
    let id = |id: Option<u64>| id.map_or(Value::Null, |id| Value::String(id.to_string()));
    let same = bound.channel == agent.channel();
    let guild = match bound.info {
        Some(found) => id(Some(found.guild)),
        // Keep the server: an agent without a channel must not become visible in all servers.
        None if same || bound.channel.is_none() => agent.guild_id.clone().map_or(Value::Null, Value::String),
        None => Value::Null,
    };
    let pairs = vec![(CHANNEL_KEYS[0], id(bound.channel)), (CHANNEL_KEYS[1], guild)];
    let (new, config, old) = editor.set_keys(agent, pairs).await?;
    if let (Some(channel), Some(found), false) = (bound.channel, bound.info, same) {
        let ChannelInfo { guild, newest_message: newest } = found;
        let made = bound.is_new;
        let row = ChannelRow {
            channel,
            guild,
            agent: agent.settings.id,
            created_by_us: made,
            seen: newest,
            skipped: newest,
            parent: None,
            user: None,
        };
        match tables.channels.upsert(row).await {
            Ok(()) => post_welcome(editor, &new, channel).await,
            Err(failure) => {
                tracing::warn!(agent = %agent.settings.name, %failure, "cannot record the last message read in its channel");
            }
        }
    }
    if let Some(before) = agent.channel().filter(|_| !same) {
        let left = format!("**{}** has left this channel. Messages here are no longer answered.", agent.settings.name);
        post_line(discord, &tables.outbox, before, &left).await;
    }
    if let Some(face) = channel_api(discord) {
        face.sync_agent_channel(agent.settings.id);
    }
    let values =
        CHANNEL_KEYS.iter().map(|key| ((*key).to_owned(), config.map().get(*key).cloned().unwrap_or_default()));
    Ok(ConfigResult {
        agent: editor.describer.describe_changed(&new).await,
        config: values.take(1).collect(),
        old: Some(old),
    })
}

/// Unbinds a channel that was deleted in Discord; its agent continues without one. Returns the agent's name.
pub async fn detach_channel(editor: &AgentEditor, channel: u64) -> Result<Option<String>> {
    let _one_at_a_time = editor.agents.lock.lock().await;
    let mut name_of_agent = None;
    if let Some(agent) = editor.agents.index.by_channel(channel) {
        let agent = editor.agents.reload_locked(agent).await?;
        if agent.channel() == Some(channel) {
            let name = agent.settings.name.clone();
            // Keep the server: an agent without a channel must not become visible in all servers.
            editor.set_keys(&agent, vec![(CHANNEL_KEYS[0], Value::Null)]).await?;
            tracing::warn!(agent = %name, channel, "the agent's Discord channel was deleted; the agent continues without one");
            let text = format!(
                "The Discord channel of {name} was deleted. The agent continues without one. To create another: \
                 `chorusctl agent config {name} channel_id new`"
            );
            editor.registry.emit_event(EventType::Notice, Some(name.clone()), None, json!({"text": text}));
            name_of_agent = Some(name);
        }
    }
    editor.store.catalog.discord.channels.delete(channel).await?;
    Ok(name_of_agent)
}

/// Writes the server of an agent's channel into agent.json if that has another or none.
pub async fn record_guild(editor: &AgentEditor, channel: u64, guild: u64) -> Result<()> {
    let guild = guild.to_string();
    let differs = |agent: &Arc<AgentEntry>| agent.guild_id.as_ref() != Some(&guild);
    if !editor.agents.index.by_channel(channel).is_some_and(|agent| differs(&agent)) {
        return Ok(());
    }
    let _one_at_a_time = editor.agents.lock.lock().await;
    let Some(agent) = editor.agents.index.by_channel(channel) else { return Ok(()) };
    let agent = editor.agents.reload_locked(agent).await?;
    if agent.channel() != Some(channel) || !differs(&agent) {
        return Ok(());
    }
    editor.set_keys(&agent, vec![(CHANNEL_KEYS[1], Value::String(guild))]).await.map(drop)
}

/// Renames the channel of a renamed agent if Chorus created it.
pub(super) async fn rename_channel(discord: &DiscordHandle, channels: &Arc<dyn ChannelTable>, agent: &AgentEntry) {
    let (Some(face), Some(channel)) = (channel_api(discord), agent.channel()) else { return };
    match channels.get(channel).await {
        Ok(Some(row)) if row.created_by_us && row.agent == agent.settings.id => {
            face.rename_channel(channel, agent.settings.name.clone());
        }
        Ok(_) => {}
        Err(failure) => tracing::warn!(agent = %agent.settings.name, %failure, "cannot rename the agent's channel"),
    }
}

/// Syncs the channel if agent.json names another one than before.
pub fn sync_if_changed(discord: &DiscordHandle, before: Option<&AgentEntry>, now: &AgentEntry) {
    if before.is_none_or(|before| before.channel() != now.channel())
        && let Some(face) = channel_api(discord)
    {
        face.sync_agent_channel(now.settings.id);
    }
}
