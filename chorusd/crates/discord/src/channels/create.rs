//! Creates a channel in the agents' category.

use std::collections::HashSet;

use chorus_base::error::Result;
use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::{CreateOutcome, CreatedChannel};
use serenity::builder::CreateChannel;
use serenity::model::channel::ChannelType;
use serenity::model::id::{ChannelId, GuildId};

use super::super::app::DiscordApp;
use super::super::rest::{Channel, RestError};
use super::welcome::channel_topic;
use crate::channels::AgentChannels;
use crate::rest::{Request, RestClient, Route};

/// Channels that a category holds.
const MAX_CATEGORY_CHANNELS: usize = 50;

/// A category may fill up, or be deleted, between choosing it and creating the channel in it.
const MAX_REFUSED_CATEGORIES: usize = 4;

/// Discord's code for an invalid form, for example a category that is full or was deleted.
const INVALID_FORM: u64 = 50_035;

/// Creates a channel for the agent `name`.
pub(super) async fn create_for_agent(
    app: &DiscordApp,
    name: &str,
    prompt: Option<&str>,
    wanted: Option<u64>,
) -> Result<CreateOutcome> {
    if !app.ops.discord.is_reachable() {
        return Ok(CreateOutcome::Skipped("Chorus is not connected to Discord".into()));
    }
    app.channels.allowlist.load_if_empty().await?;
    let guilds = candidate_guilds(&app.channels, &app.rest).await?;
    let guild = match (wanted.map(GuildId::new), guilds.as_slice()) {
        (Some(wanted), _) if guilds.contains(&wanted) => wanted,
        (Some(_), _) => return Ok(CreateOutcome::Skipped("the server is not allowed".into())),
        (None, [only]) => *only,
        (None, []) => return Ok(CreateOutcome::Skipped("Chorus is not in any server".into())),
        (None, _) => {
            return Ok(CreateOutcome::Skipped(format!("Chorus is in {} servers, and none was chosen", guilds.len())));
        }
    };
    let _one_at_a_time = app.channels.create_lock.lock().await;
    let made = create_in_category(&app.ops, &app.rest, guild, name, prompt).await?;
    Ok(CreateOutcome::Created(CreatedChannel { channel: made.id.get(), guild: guild.get() }))
}

/// Returns the guilds in which a channel may be created. After a resumed session the cache is empty, so they are
/// requested.
async fn candidate_guilds(channels: &AgentChannels, rest: &RestClient) -> Result<Vec<GuildId>, RestError> {
    let known = channels.guild_cache.guild_ids();
    if !known.is_empty() && channels.guild_cache.has_all_shards() {
        return Ok(known);
    }
    #[derive(serde::Deserialize)]
    struct OwnGuild {
        id: GuildId,
    }
    let mine: Vec<OwnGuild> = rest.call(Request::get(Route::UserMeGuilds)).await?;
    Ok(mine.into_iter().map(|guild| guild.id).filter(|guild| channels.serves(*guild)).collect())
}

async fn create_in_category(
    ops: &Ops,
    rest: &RestClient,
    guild: GuildId,
    name: &str,
    prompt: Option<&str>,
) -> Result<Channel, RestError> {
    let mut refused = HashSet::new();
    loop {
        let category = find_or_create_category(rest, &ops.config.discord.category, guild, &refused).await?;
        let mut channel = CreateChannel::new(name).kind(ChannelType::Text);
        if let Some(topic) =
            prompt.map(|prompt| channel_topic(&ops.redactor.redact_text(prompt))).filter(|topic| !topic.is_empty())
        {
            channel = channel.topic(topic);
        }
        if let Some(category) = category {
            channel = channel.category(category);
        }
        match (rest.create_channel(guild, &channel).await, category) {
            (Err(error @ RestError::Refused { code: INVALID_FORM, .. }), Some(category))
                if refused.len() < MAX_REFUSED_CATEGORIES =>
            {
                if has_room(&rest.guild_channels(guild).await?, category) {
                    return Err(error);
                }
                // The category filled up meanwhile, or was deleted.
                refused.insert(category);
            }
            (made, _) => return made,
        }
    }
}

/// Returns a category with room, which is created if there is none; `None` if no category is configured.
async fn find_or_create_category(
    rest: &RestClient,
    wanted: &str,
    guild: GuildId,
    refused: &HashSet<ChannelId>,
) -> Result<Option<ChannelId>, RestError> {
    let wanted = wanted.trim();
    if wanted.is_empty() {
        return Ok(None);
    }
    let channels = rest.guild_channels(guild).await?;
    match choose_category(&channels, wanted, refused) {
        CategoryChoice::Existing(category) => Ok(Some(category)),
        CategoryChoice::New(name) => {
            let made = rest.create_channel(guild, &CreateChannel::new(name).kind(ChannelType::Category)).await?;
            Ok(Some(made.id))
        }
    }
}

/// Returns whether a category exists and has room for one more channel.
fn has_room(channels: &[Channel], category: ChannelId) -> bool {
    channels.iter().any(|channel| channel.id == category)
        && channels.iter().filter(|channel| channel.parent_id == Some(category)).count() < MAX_CATEGORY_CHANNELS
}

#[derive(Debug, PartialEq, Eq)]
enum CategoryChoice {
    Existing(ChannelId),
    /// A category of this name must be created.
    New(String),
}

/// Chooses the first of `wanted`, `wanted 2`, `wanted 3`... that has room.
fn choose_category(channels: &[Channel], wanted: &str, refused: &HashSet<ChannelId>) -> CategoryChoice {
    let mut number = 1_usize;
    loop {
        let name = if number == 1 { wanted.to_owned() } else { format!("{wanted} {number}") };
        let named = |channel: &&Channel| {
            let same = |known: &str| known.to_lowercase() == name.to_lowercase();
            channel.kind == ChannelType::Category && channel.name.as_deref().is_some_and(same)
        };
        let mut categories = channels.iter().filter(named).peekable();
        if categories.peek().is_none() {
            return CategoryChoice::New(name);
        }
        let free = |category: &&Channel| !refused.contains(&category.id) && has_room(channels, category.id);
        if let Some(category) = categories.find(free) {
            return CategoryChoice::Existing(category.id);
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(id: u64, kind: ChannelType, parent: Option<u64>, name: &str) -> Channel {
        Channel {
            id: ChannelId::new(id),
            kind,
            guild_id: None,
            parent_id: parent.map(ChannelId::new),
            name: Some(name.to_owned()),
            last_message_id: None,
            thread_metadata: None,
        }
    }

    #[test]
    fn the_first_category_of_the_name_that_has_room_is_chosen() {
        let none = HashSet::new();
        let mut channels =
            vec![channel(1, ChannelType::Text, None, "Agents"), channel(2, ChannelType::Category, None, "x")];
        assert_eq!(choose_category(&channels, "Agents", &none), CategoryChoice::New("Agents".into()));
        channels.push(channel(3, ChannelType::Category, None, "agents"));
        assert_eq!(choose_category(&channels, "Agents", &none), CategoryChoice::Existing(ChannelId::new(3)));
        channels.extend((100..150).map(|id| channel(id, ChannelType::Text, Some(3), "a")));
        assert_eq!(choose_category(&channels, "Agents", &none), CategoryChoice::New("Agents 2".into()));
        channels.push(channel(4, ChannelType::Category, None, "Agents 2"));
        assert_eq!(choose_category(&channels, "Agents", &none), CategoryChoice::Existing(ChannelId::new(4)));
        assert_eq!(
            choose_category(&channels, "Agents", &[ChannelId::new(4)].into()),
            CategoryChoice::New("Agents 3".into())
        );
        channels.pop();
        channels.push(channel(5, ChannelType::Category, None, "Agents"));
        assert_eq!(choose_category(&channels, "Agents", &none), CategoryChoice::Existing(ChannelId::new(5)));
    }
}
