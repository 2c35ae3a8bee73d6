//! Slash commands. Each is answered at once with a promise of more, before anything is looked up, and then done by the same function of
//! `ops` that the socket's verb is.

mod agent;
mod call;
mod confirm;
mod context;
mod definitions;
mod history;
mod offer;
mod overview;
pub mod press;
mod register;
mod reply;
mod settings;
mod table;
mod tasks;
mod told;
mod wording;
mod words;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use chorus_proto::ErrorKind;
use definitions::{Action, Verb};
pub use register::{forget, joined, look_over, ready};
use serenity::model::application::{CommandInteraction, Interaction};
use serenity::model::guild::Member;
use serenity::model::id::{ChannelId, GuildId};
use tokio::sync::{Mutex, Semaphore};
pub use wording::here;

use self::call::{Asker, Call, Given};
use self::reply::Reply;
use self::told::{finish, first};
use crate::discord::bridge::Bridge;
use crate::discord::per_server::PerServer;
use crate::discord::person::Person;
use crate::discord::rest::interactions::{First, Way};
use crate::failure::{Failure, Result};

/// Sessions of a page of history.
const PAGE: u64 = 10;

/// Commands that are carried out at once; more are told so.
const AT_ONCE: usize = 4096;

/// What a command that runs may still take when the daemon stops.
const LAST: Duration = Duration::from_secs(1);

const DIRECT: &str = "Chorus is there in servers only.\nHint: use the command in the channel of an agent.";
const BUSY: &str = "Too many commands are waiting.\nHint: try again in a moment.";

/// What commands share.
#[derive(Debug)]
pub struct Slash {
    room: Arc<Semaphore>,
    asked: confirm::Asked,
    /// A server is told the commands by one at a time.
    registering: PerServer<()>,
    /// What servers were told is noted by one at a time.
    noting: Mutex<()>,
    /// Whose commands they are; 0: not known yet.
    application: AtomicU64,
}

impl Default for Slash {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        Self {
            room,
            asked: confirm::Asked::default(),
            registering: PerServer::default(),
            noting: Mutex::default(),
            application: AtomicU64::new(0),
        }
    }
}

/// Takes what somebody typed or pressed; it is answered beside what comes next.
pub fn hear(bridge: &Arc<Bridge>, interaction: Interaction) {
    let tasks = bridge.tasks.clone();
    let bridge = bridge.clone();
    match interaction {
        Interaction::Command(command) => _ = tasks.spawn(carry(bridge, command)),
        Interaction::Autocomplete(command) => _ = tasks.spawn(suggest(bridge, command)),
        Interaction::Component(pressed) => _ = tasks.spawn(press::press(bridge, pressed)),
        _ => {}
    }
}

fn asker(bridge: &Arc<Bridge>, guild: GuildId, channel: ChannelId, member: &Member) -> Asker {
    Asker { bridge: bridge.clone(), guild, channel, person: Person::of(bridge, guild, member) }
}

/// The same once it is known how roles are called.
async fn known(by: Asker, member: &Member) -> Asker {
    match by.bridge.guilds.learn(&by.bridge.rest, by.guild).await {
        Ok(()) => asker(&by.bridge, by.guild, by.channel, member),
        Err(error) => {
            tracing::warn!(%error, guild = %by.guild, "cannot tell how roles are called");
            by
        }
    }
}

async fn carry(bridge: Arc<Bridge>, command: CommandInteraction) {
    let CommandInteraction { id, application_id, data, guild_id, channel_id, member, token, .. } = command;
    let way = Way { id, application: application_id, token };
    let Some((guild, member)) = guild_id.zip(member) else {
        first(&bridge, &way, &First::Say(DIRECT.into())).await;
        return;
    };
    if !bridge.rooms.serves(guild) {
        return;
    }
    let given = Given::of(&data);
    let Some(action) = table::find(&data.name, given.sub.as_deref()) else {
        let unknown = "Chorus does not know this command any more.\nHint: Discord shows the new ones in a moment.";
        first(&bridge, &way, &First::Say(unknown.into())).await;
        return;
    };
    let Ok(room) = bridge.slash.room.clone().try_acquire_owned() else {
        first(&bridge, &way, &First::Say(BUSY.into())).await;
        return;
    };
    let by = asker(&bridge, guild, channel_id, &member);
    // Nobody else reads that somebody may not do something.
    let private = action.private || bridge.guilds.knows(guild) && by.may(action.right).is_err();
    if !first(&bridge, &way, &First::Defer { private }).await {
        return;
    }
    let by = known(by, &member).await;
    tracing::debug!(command = data.name, sub = given.sub, by = %by.person.requester, %guild, "a command");
    let call = Call { by: by.clone(), given };
    let done = whole(&bridge, async move { act(action, &call).await }).await;
    let summary_of = done.as_ref().ok().and_then(|reply| reply.summary_of.clone());
    finish(&bridge, &way, private, done).await;
    drop(room);
    if let Some(session) = summary_of {
        tokio::select! {
            reply = context::summarised(&by, session) => if let Some(reply) = reply { told::edit(&bridge, &way, &reply).await },
            () = bridge.stop.cancelled() => {}
        }
    }
}

/// Runs `work` to its end, also where nobody waits for it any more because the daemon stops.
async fn whole<T: Send + 'static>(
    bridge: &Bridge,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::select! {
        done = tokio::spawn(work) => done.unwrap_or_else(|e| Err(Failure::internal(e.to_string()))),
        () = stopped(bridge) => Err(Failure::new(ErrorKind::Stopping, "the daemon is stopping; it may have been done or not")
            .hint("look when it has started anew")),
    }
}

/// The daemon stops, and has for a moment.
async fn stopped(bridge: &Bridge) {
    bridge.stop.cancelled().await;
    tokio::time::sleep(LAST).await;
}

async fn act(action: &Action, call: &Call) -> Result<Reply> {
    call.by.may(action.right)?;
    match action.verb {
        Verb::AgentInit => agent::init(call).await,
        Verb::AgentDestroy => agent::destroy(call).await,
        Verb::AgentList => agent::list(call).await,
        Verb::AgentConfig => agent::config(call).await,
        Verb::ContextSave => context::save(call).await,
        Verb::ContextClear => context::clear(call).await,
        Verb::ContextHistory => history::history(call).await,
        Verb::ContextRestore => context::restore(call).await,
        Verb::ContextResume => context::resume(call).await,
        Verb::ContextCompact => context::compact(call).await,
        Verb::ContextRewind => context::rewind(call).await,
        Verb::SettingsModel => settings::model(call).await,
        Verb::SettingsPermissions => settings::permissions(call).await,
        Verb::SettingsIdle => settings::idle(call).await,
        Verb::SettingsShow => settings::show(call).await,
        Verb::SettingsValidateKeys => settings::validate_keys(call).await,
        Verb::TasksList => tasks::list(call).await,
        Verb::TasksShow => tasks::show(call).await,
        Verb::TasksStop => tasks::stop(call).await,
        Verb::Status => overview::status(call).await,
        Verb::Models => overview::models(call).await,
        Verb::Approvals => overview::approvals(call).await,
        Verb::Usage => overview::usage(call).await,
        Verb::Ping => overview::ping(call).await,
    }
}

/// What is offered while a command is typed.
async fn suggest(bridge: Arc<Bridge>, command: CommandInteraction) {
    let CommandInteraction { id, application_id, data, guild_id, channel_id, member, token, .. } = command;
    let way = Way { id, application: application_id, token };
    let Some((guild, member)) = guild_id.zip(member).filter(|(guild, _)| bridge.rooms.serves(*guild)) else { return };
    let room = bridge.slash.room.clone().try_acquire_owned();
    let given = Given::of(&data);
    let mut choices = Vec::new();
    if let (Ok(_), Some(action), Some(typed)) =
        (&room, table::find(&data.name, given.sub.as_deref()), data.autocomplete())
    {
        let by = asker(&bridge, guild, channel_id, &member);
        choices = offer::offer(&by, action, &given, typed.name, typed.value).await;
    }
    first(&bridge, &way, &First::Offer(choices)).await;
}
