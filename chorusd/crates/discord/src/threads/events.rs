//! Keeps the cache of threads up to date, from events, the records on disk and requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Backoff;
use chorus_engine::ops::discord::ChannelRow;
use chorus_runtime::SpawnTracked as _;
use serenity::model::channel::{ChannelType, GuildChannel};
use serenity::model::event::Event;
use serenity::model::id::{ChannelId, GuildId};
use tokio::time::sleep;

use super::cache::{Thread, is_thread};
use super::{archived, lifecycle, titles};
use crate::app::DiscordApp;
use crate::conversations::of_thread;
use crate::inbound;
use crate::rest::{Channel, RestError};

/// Waits between tries to request a channel.
const LOOKUP_BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// Loads the threads that are recorded on disk, so that their messages find their way after a restart.
pub(crate) async fn load(app: &DiscordApp) {
    match app.tables.channels.list_threads().await {
        Ok(rows) => {
            for row in rows {
                let (Some(id), Some(parent), Some(guild)) = (id(row.channel), row.parent.and_then(id), id(row.guild))
                else {
                    continue;
                };
                insert_recorded(app, (ChannelId::new(id), ChannelId::new(parent), GuildId::new(guild)));
            }
        }
        Err(failure) => tracing::error!(%failure, "cannot load the threads of agents"),
    }
}

/// Inserts a thread that is recorded on disk, unless more is known of it.
fn insert_recorded(app: &DiscordApp, (id, parent, guild): (ChannelId, ChannelId, GuildId)) {
    if app.channels.threads.get(id).is_some() {
        app.channels.threads.update(id, |thread| thread.is_recorded = true);
        return;
    }
    app.channels.threads.insert(Thread {
        id,
        parent,
        guild,
        name: None,
        last_message: None,
        archived: None,
        // Until Discord says otherwise.
        is_private: true,
        is_recorded: true,
    });
}

/// Learns a thread from its row, which another node has inserted.
pub(crate) fn learn(app: &DiscordApp, row: &ChannelRow) {
    if let (Some(thread), Some(parent), Some(guild)) = (id(row.channel), row.parent.and_then(id), id(row.guild)) {
        insert_recorded(app, (ChannelId::new(thread), ChannelId::new(parent), GuildId::new(guild)));
    }
}

/// Records that a thread is not archived, because somebody wrote in it.
pub(crate) fn mark_active(app: &DiscordApp, thread: &Thread) {
    if thread.archived == Some(true) {
        app.channels.threads.update(thread.id, |thread| thread.archived = Some(false));
    }
}

fn id(number: u64) -> Option<u64> {
    Some(number).filter(|number| *number != 0)
}

/// Updates the cache from a gateway event, and closes or opens conversations in the background. Does not block.
pub(crate) fn handle_event(app: &Arc<DiscordApp>, event: &Event) {
    match event {
        Event::GuildCreate(event) if app.channels.serves(event.guild.id) => {
            apply_list(app, event.guild.id, &event.guild.threads, |_| true);
            app.tasks.spawn_tracked(archived::backfill(app.clone(), event.guild.id));
        }
        Event::ThreadListSync(event) if app.channels.serves(event.guild_id) => {
            // Sent when Chorus may see channels again, which it may not have for a while.
            let is_synced = |thread: &Thread| event.channel_ids.as_ref().is_none_or(|ids| ids.contains(&thread.parent));
            apply_list(app, event.guild_id, &event.threads, is_synced);
        }
        Event::ThreadCreate(event) if app.channels.serves(event.thread.guild_id) => {
            apply(app, &event.thread);
        }
        Event::ThreadUpdate(event) if app.channels.serves(event.thread.guild_id) => {
            apply(app, &event.thread);
        }
        Event::ThreadDelete(event) => on_deleted(app, event.thread.id),
        // Discord deletes the threads of a channel with it, without further events.
        Event::ChannelDelete(event) => {
            let below = |thread: &Arc<Thread>| thread.parent == event.channel.id;
            app.channels.threads.all().iter().filter(|thread| below(thread)).for_each(|gone| on_deleted(app, gone.id));
        }
        _ => {}
    }
}

/// Applies a list of the active threads of a guild, or below those of its channels for which `is_listed` is true: reads them,
/// and closes the conversations of threads that are not in it.
fn apply_list(app: &Arc<DiscordApp>, guild: GuildId, threads: &[GuildChannel], is_listed: impl Fn(&Thread) -> bool) {
    let active: HashSet<ChannelId> = threads.iter().filter_map(|thread| insert_active(app, thread, guild)).collect();
    close_inactive(app, guild, &active, is_listed);
    app.tasks.spawn_tracked(backfill_active(app.clone(), active));
}

/// Inserts a thread that is in a list of active ones. Returns its id if it is a thread.
fn insert_active(app: &Arc<DiscordApp>, channel: &GuildChannel, guild: GuildId) -> Option<ChannelId> {
    // A list is sent with the id of its guild, and the threads in it may lack that.
    let thread = Thread { guild, archived: Some(false), ..Thread::from_channel(channel)? };
    let id = thread.id;
    if app.channels.threads.insert(thread).is_some_and(|before| before.archived == Some(true)) {
        app.tasks.spawn_tracked(lifecycle::reopen(app.clone(), id));
    }
    titles::follow_name(app, id);
    Some(id)
}

/// Applies what Discord says of a thread. Opens or closes its conversation if that is new.
fn apply(app: &Arc<DiscordApp>, channel: &GuildChannel) {
    let Some(thread) = Thread::from_channel(channel) else { return };
    let (id, archived) = (thread.id, thread.archived);
    let before = app.channels.threads.insert(thread).and_then(|before| before.archived);
    titles::follow_name(app, id);
    match archived {
        Some(true) if before != archived => close(app, id),
        Some(false) if before != archived => _ = app.tasks.spawn_tracked(lifecycle::reopen(app.clone(), id)),
        _ => {}
    }
}

/// Closes the conversation of a thread that was deleted.
fn on_deleted(app: &Arc<DiscordApp>, thread: ChannelId) {
    if app.channels.threads.remove(thread).is_none() {
        return;
    }
    let app = app.clone();
    app.tasks.clone().spawn_tracked(async move {
        if let Err(failure) = app.tables.channels.delete(thread.get()).await {
            tracing::warn!(%thread, %failure, "cannot forget a deleted thread");
        }
        lifecycle::close(app, thread).await;
    });
}

/// Closes the conversations of threads of a guild that are not in the list of active ones: they were archived or deleted
/// while nobody listened.
fn close_inactive(
    app: &Arc<DiscordApp>,
    guild: GuildId,
    active: &HashSet<ChannelId>,
    is_listed: impl Fn(&Thread) -> bool,
) {
    let is_gone = |thread: &Thread| thread.guild == guild && !active.contains(&thread.id) && is_listed(thread);
    for thread in app.channels.threads.all().iter().filter(|thread| is_gone(thread)) {
        let is_open = is_open(app, thread);
        app.channels.threads.update(thread.id, |thread| thread.archived = Some(true));
        if thread.is_recorded && is_open {
            // Somebody may have written in it before.
            inbound::on_thread_available(app, thread.id);
        }
        if thread.is_recorded && (is_open || has_worktree(app, thread)) {
            close(app, thread.id);
        }
    }
}

/// Closes the conversation of a channel if that is an archived thread.
pub(crate) fn close_if_archived(app: &Arc<DiscordApp>, channel: ChannelId) {
    if app.channels.threads.is_archived(channel) {
        close(app, channel);
    }
}

/// Closes the conversation of a thread that is archived, unless events from before the connection are still coming: one of
/// them may say that it was opened since.
fn close(app: &Arc<DiscordApp>, thread: ChannelId) {
    let guild = app.channels.threads.get(thread).map(|thread| thread.guild);
    if app.ops.discord.is_shard_connected(app.shards.of(guild)) {
        app.tasks.spawn_tracked(lifecycle::close(app.clone(), thread));
    }
}

/// Handles a new connection, once everything that was missed is known: closes the conversations of archived threads that
/// are still open, or whose git worktree a crash or an error has left.
pub(crate) fn on_connected(app: &Arc<DiscordApp>, shard: u32) {
    let mut threads = app.channels.threads.all();
    threads.retain(|thread| app.shards.of(Some(thread.guild)) == shard);
    let is_left = |thread: &Thread| is_open(app, thread) || has_worktree(app, thread);
    for thread in threads.iter().filter(|thread| thread.archived == Some(true) && is_left(thread)) {
        app.tasks.spawn_tracked(lifecycle::close(app.clone(), thread.id));
    }
}

/// Returns whether the conversation of a thread is open.
fn is_open(app: &DiscordApp, thread: &Thread) -> bool {
    let agent = app.channels.agent_of(thread.parent);
    let row = agent.and_then(|agent| of_thread(&app.ops, agent.settings.id, thread.id));
    row.is_some_and(|row| row.closed_at.is_none())
}

/// Returns whether the conversation of a thread is closed and still has the directory of its git worktree.
fn has_worktree(app: &DiscordApp, thread: &Thread) -> bool {
    let Some(agent) = app.channels.agent_of(thread.parent) else { return false };
    let row = of_thread(&app.ops, agent.settings.id, thread.id);
    row.is_some_and(|row| app.ops.agent_resolver.has_worktree_to_remove(&agent, row.key))
}

/// Backfills active threads below the channels of agents.
async fn backfill_active(app: Arc<DiscordApp>, active: HashSet<ChannelId>) {
    app.channels.look_up_moved(&app).await;
    for thread in active.into_iter().filter_map(|thread| app.channels.threads.get(thread)) {
        if app.channels.agent_of(thread.parent).is_none() {
            continue;
        }
        let after = match app.tables.channels.threads_after(thread.parent.get()).await {
            Ok(after) => after,
            Err(failure) => {
                tracing::warn!(thread = %thread.id, %failure, "cannot check a thread for missed messages");
                continue;
            }
        };
        // An older thread in which nobody wrote has nothing to be read.
        if thread.is_recorded || after.is_some_and(|after| thread.id.get() > after) {
            inbound::on_thread_available(&app, thread.id);
        }
    }
}

/// Inserts a channel that Chorus created or requested.
pub(crate) fn insert_found(app: &DiscordApp, found: &Channel) {
    match (found.parent_id.filter(|_| is_thread(found.kind)), found.guild_id) {
        (Some(parent), Some(guild)) if app.channels.serves(guild) => {
            app.channels.threads.insert(Thread {
                id: found.id,
                parent,
                guild,
                name: found.name.clone(),
                last_message: found.last_message_id,
                archived: found.thread_metadata.map(|metadata| metadata.archived),
                is_private: found.kind == ChannelType::PrivateThread,
                is_recorded: false,
            });
        }
        _ => app.channels.threads.insert_other(found.id),
    }
}

/// Finds out what an unknown channel is, with retries. Without effect if it is known or Discord does not tell.
pub(crate) async fn lookup(app: &DiscordApp, channel: ChannelId) {
    let (threads, mut backoff) = (&app.channels.threads, LOOKUP_BACKOFF);
    while !threads.is_checked(channel) {
        match app.rest.channel(channel).await {
            Ok(found) => insert_found(app, &found),
            Err(RestError::Gone { .. }) => threads.insert_other(channel),
            Err(error) if error.is_transient() => {
                tracing::debug!(%channel, %error, "cannot check a channel without an agent yet");
                tokio::select! {
                    () = sleep(backoff.next_wait()) => {}
                    () = app.stop.cancelled() => return,
                }
            }
            Err(error) => return tracing::debug!(%channel, %error, "cannot check a channel without an agent"),
        }
    }
}
