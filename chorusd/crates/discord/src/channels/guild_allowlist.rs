//! Allowlist of Discord guilds. If `guilds` is not configured, the guilds present at the first connection are
//! remembered (or, if there were none, the first invitation). Later invitations are ignored, so a stranger cannot gain
//! control by inviting the bot.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rest::{Request, RestError, Route};
use crate::shards::{shard_of, shard_of_ready};
use chorus_base::error::Result as StoreResult;
use chorus_base::sync::RwLock;
use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::guild_allowlist;
use chorus_proto::visible_text::make_visible;
use serenity::model::event::Event;
use serenity::model::id::GuildId;

use super::super::app::DiscordApp;

/// Guilds that a response lists at most.
const GUILDS_PAGE: usize = 200;
/// Characters of a guild's name that are shown.
const MAX_NAME_CHARS: usize = 60;

/// The guilds that Chorus listens to. In memory and in the catalog.
#[derive(Debug)]
pub(crate) struct GuildAllowlist {
    ops: Arc<Ops>,
    inner: RwLock<AllowedGuilds>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowedGuilds {
    Configured(Vec<u64>),
    /// `None` before the first connection.
    Remembered(Option<Vec<u64>>),
}

impl AllowedGuilds {
    fn ids(&self) -> &[u64] {
        match self {
            Self::Configured(ids) | Self::Remembered(Some(ids)) => ids,
            Self::Remembered(None) => &[],
        }
    }

    /// Learns the guilds that Chorus is in, or one that it was invited to. Returns whether the allowlist changed.
    fn learn(&mut self, guilds: &[u64]) -> bool {
        let Self::Remembered(known) = self else { return false };
        match (known.as_deref(), guilds) {
            (None, all) => *known = Some(all.to_vec()),
            (Some([]), [first]) => *known = Some(vec![*first]),
            // Of several new guilds it is not known which one was first.
            _ => return false,
        }
        true
    }
}

impl GuildAllowlist {
    /// # Errors
    /// If the database cannot be read, it is not known which guilds are allowed.
    pub(crate) async fn new(ops: &Arc<Ops>) -> StoreResult<Self> {
        let listed = ops.config.discord.guilds.clone();
        let inner = match listed.is_empty() {
            true => AllowedGuilds::Remembered(guild_allowlist::load(ops).await?),
            false => AllowedGuilds::Configured(listed),
        };
        Ok(Self { ops: ops.clone(), inner: RwLock::new(inner) })
    }

    /// Reads the remembered guilds again: another node may have been the first that was connected.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(crate) async fn reload(&self) -> StoreResult<()> {
        if matches!(&*self.inner.read(), AllowedGuilds::Configured(_)) {
            return Ok(());
        }
        if let Some(known) = guild_allowlist::load(&self.ops).await? {
            *self.inner.write() = AllowedGuilds::Remembered(Some(known));
        }
        Ok(())
    }

    /// Reads the remembered guilds if none is known: this node was not connected yet, and another one may have been.
    ///
    /// # Errors
    /// As [`GuildAllowlist::reload`].
    pub(crate) async fn load_if_empty(&self) -> StoreResult<()> {
        if !self.all().is_empty() || matches!(&*self.inner.read(), AllowedGuilds::Configured(_)) {
            return Ok(());
        }
        let known = guild_allowlist::load(&self.ops).await?;
        let mut inner = self.inner.write();
        // Not what was learned meanwhile.
        if known.is_some() && inner.ids().is_empty() {
            *inner = AllowedGuilds::Remembered(known);
        }
        Ok(())
    }

    /// Returns whether a guild is allowed.
    #[must_use]
    pub(crate) fn contains(&self, guild: GuildId) -> bool {
        self.inner.read().ids().contains(&guild.get())
    }

    /// Returns all allowed guilds, including those that Chorus is not in.
    #[must_use]
    pub(crate) fn all(&self) -> Vec<GuildId> {
        let inner = self.inner.read();
        inner.ids().iter().filter(|id| **id != 0).map(|id| GuildId::new(*id)).collect()
    }

    /// Returns whether no connection was opened yet.
    fn is_unset(&self) -> bool {
        *self.inner.read() == AllowedGuilds::Remembered(None)
    }

    /// Learns guilds that Chorus is in.
    fn learn(&self, guilds: &[u64]) {
        let mut inner = self.inner.write();
        if !inner.learn(guilds) {
            return;
        }
        let ids = inner.ids().to_vec();
        // Start the write before anything else is done for these guilds, so that it is committed first.
        let kept = guild_allowlist::store(&self.ops, &ids);
        drop(inner);
        tracing::info!(servers = ?ids, "allowed these Discord servers; list others in `guilds` to allow them");
        chorus_runtime::spawn(async move {
            if let Err(failure) = kept.await {
                tracing::error!(%failure, "cannot store the list of allowed Discord servers");
            }
        });
    }

    /// Reports a guild that is not allowed, in the log and in the state.
    fn report_not_allowed(&self, guild: GuildId, name: &str) {
        let name: String = make_visible(name).chars().take(MAX_NAME_CHARS).collect();
        let said = guild_allowlist::describe_unserved(guild.get(), Some(&name));
        tracing::warn!(hint = guild_allowlist::UNSERVED_HINT, "{said}");
        self.ops.discord.with_unserved_guilds(|all| all.insert(guild.get(), Some(name)));
    }

    /// Updates the allowlist from an event; before anything asks [`GuildAllowlist::contains`] about it.
    pub(crate) fn handle_event(&self, event: &Event) {
        match event {
            Event::Ready(ready) => {
                let guilds: Vec<u64> = ready.ready.guilds.iter().map(|guild| guild.id.get()).collect();
                let (shard, count) = shard_of_ready(ready);
                // Several shards would each name some only: see `learn_guilds`.
                if count == 1 || !self.is_unset() {
                    self.learn(&guilds);
                }
                let here = |id: &u64| GuildId::new((*id).max(1));
                let strangers = guilds.iter().filter(|id| !self.contains(here(id))).map(|id| (*id, None));
                let strangers: BTreeMap<u64, Option<String>> = strangers.collect();
                self.ops.discord.with_unserved_guilds(|all| {
                    all.retain(|id, _| shard_of(here(id), count) != shard);
                    all.extend(strangers);
                });
            }
            Event::GuildCreate(event) => {
                let id = event.guild.id;
                self.learn(&[id.get()]);
                if self.contains(id) {
                    return;
                }
                self.report_not_allowed(id, &event.guild.name);
            }
            Event::GuildDelete(event) if !event.guild.unavailable => {
                self.ops.discord.with_unserved_guilds(|all| all.remove(&event.guild.id.get()));
            }
            _ => {}
        }
    }
}

/// Requests all guilds that Chorus is in, and allows them if no connection was opened before.
pub(crate) async fn learn_guilds(app: &DiscordApp) -> Result<(), RestError> {
    #[derive(serde::Deserialize)]
    struct OwnGuild {
        id: GuildId,
    }
    if !app.channels.allowlist.is_unset() {
        return Ok(());
    }
    let mut all: Vec<u64> = Vec::new();
    loop {
        let after = vec![("after", all.last().copied().unwrap_or_default().to_string())];
        let page: Vec<OwnGuild> = app.rest.background().call(Request::get(Route::UserMeGuilds).query(after)).await?;
        let is_last = page.len() < GUILDS_PAGE;
        all.extend(page.iter().map(|guild| guild.id.get()));
        if is_last {
            break;
        }
    }
    app.channels.allowlist.learn(&all);
    Ok(())
}

/// Requests the list of guilds after the session of the previous daemon was resumed, because the gateway does not send
/// it.
pub(super) async fn refresh_after_resume(app: Arc<DiscordApp>) {
    #[derive(serde::Deserialize)]
    struct OwnGuild {
        id: GuildId,
        name: String,
    }
    let served = &app.channels.allowlist;
    let mine = app.rest.background().call(Request::get(Route::UserMeGuilds)).await;
    match mine {
        Ok::<Vec<OwnGuild>, _>(mine) => {
            // The previous daemon may have ended before it stored the allowlist.
            if served.is_unset() {
                served.learn(&mine.iter().map(|guild| guild.id.get()).collect::<Vec<_>>());
            }
            mine.iter()
                .filter(|guild| !served.contains(guild.id))
                .for_each(|guild| served.report_not_allowed(guild.id, &guild.name));
        }
        Err(error) => tracing::warn!(%error, "cannot list the servers that Chorus is in"),
    }
    for guild in served.all() {
        if let Err(error) = app.roles.ensure_loaded(&app, guild).await {
            tracing::warn!(%error, %guild, "Discord did not return the roles of this server");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_servers_are_served_and_no_later_ones() {
        let mut inner = AllowedGuilds::Remembered(None);
        assert!(inner.ids().is_empty() && inner.learn(&[1, 2]));
        assert!(!inner.learn(&[3]) && !inner.learn(&[1, 2, 3]));
        assert_eq!(inner.ids(), [1, 2]);
        // There was no guild at first: the next one is allowed, if it is only one.
        let mut inner = AllowedGuilds::Remembered(None);
        assert!(inner.learn(&[]) && !inner.learn(&[]) && !inner.learn(&[3, 4]));
        assert!(inner.learn(&[4]) && !inner.learn(&[3]));
        assert_eq!(inner.ids(), [4]);
        // A configured allowlist never changes.
        let mut inner = AllowedGuilds::Configured(vec![7]);
        assert!(!inner.learn(&[1]) && !inner.learn(&[]));
        assert_eq!(inner.ids(), [7]);
    }
}
