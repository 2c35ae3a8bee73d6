//! Slash commands. Each interaction first gets a deferred response, before anything is looked up. Then the command runs
//! the same `ops` function as the method of the socket.

mod agent;
mod autocomplete;
pub(crate) mod buttons;
mod cancel;
mod command_definition;
mod command_table;
mod confirmation;
mod context;
mod conversation;
mod file;
mod forms;
mod help;
mod hint_rewrite;
mod history;
mod interaction_origin;
mod interaction_sender;
mod invocation;
mod memory;
mod permissions;
mod registration;
mod response;
mod schedule;
mod search;
mod session;
mod settings;
mod shortcuts;
mod status_commands;
mod tasks;
mod terminal_terms;
mod text_format;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_engine::KeyedMutex;
use chorus_proto::ErrorKind;
use chorus_runtime::SpawnTracked as _;
use serenity::model::application::{CommandInteraction, Interaction};
use serenity::model::id::GuildId;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use self::command_definition::Subcommand;
use self::interaction_origin::{InteractionOrigin, Unserved};
use self::interaction_sender::{send_initial_response, send_outcome};
use self::invocation::{Arguments, Invocation};
use self::response::Response;
use crate::app::DiscordApp;
use crate::rest::interactions::{InitialResponse, InteractionRef};
pub(crate) use hint_rewrite::{mention_people, rewrite_message};
pub(crate) use registration::{on_guild_joined, on_guild_left, on_ready, on_resumed};
pub(crate) use text_format::format_hint;

/// Sessions on a page of history.
const HISTORY_PAGE_SIZE: u64 = 10;

/// Commands that may run at the same time; further ones get an error.
const MAX_RUNNING_COMMANDS: usize = 4096;

/// How long a running command may go on when the daemon stops.
const STOP_GRACE: Duration = Duration::from_secs(1);

const GUILDS_ONLY_TEXT: &str = "Chorus works only in servers. Use the command in an agent's channel.";
const BUSY_TEXT: &str = "Too many commands are running. Try again in a moment.";

/// State that all slash commands share.
#[derive(Debug)]
pub(crate) struct SlashCommands {
    permits: Arc<Semaphore>,
    confirmations: confirmation::Confirmations,
    /// Lets one task at a time register the commands in a guild, or those for direct messages.
    register_locks: KeyedMutex<Option<GuildId>>,
    /// Lets one task at a time change the record of registered commands.
    registered_lock: Mutex<()>,
    /// The application whose commands these are; 0 if not known yet.
    application_id: AtomicU64,
}

impl Default for SlashCommands {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(MAX_RUNNING_COMMANDS));
        Self {
            permits: room,
            confirmations: confirmation::Confirmations::default(),
            register_locks: KeyedMutex::default(),
            registered_lock: Mutex::default(),
            application_id: AtomicU64::new(0),
        }
    }
}

impl SlashCommands {
    /// Returns the application that this is, which is also its user; 0 if not known yet.
    pub(crate) fn application_id(&self) -> u64 {
        self.application_id.load(Relaxed)
    }
}

/// Handles a command, a button press, a form or an autocomplete request in a task of its own.
pub(crate) fn handle_interaction(app: &Arc<DiscordApp>, interaction: Interaction) {
    let tasks = app.tasks.clone();
    let app = app.clone();
    match interaction {
        Interaction::Command(command) => _ = tasks.spawn_tracked(run_command(app, command)),
        Interaction::Autocomplete(command) => _ = tasks.spawn_tracked(answer_autocomplete(app, command)),
        Interaction::Component(pressed) => _ = tasks.spawn_tracked(buttons::handle_button(app, pressed)),
        Interaction::Modal(form) => _ = tasks.spawn_tracked(forms::handle_form(app, form)),
        _ => {}
    }
}

/// Answers an interaction that is not handled.
async fn answer_unserved(app: &DiscordApp, way: &InteractionRef, unserved: Unserved) {
    if unserved == Unserved::DirectMessages {
        send_initial_response(&app.rest, way, &InitialResponse::PrivateMessage(GUILDS_ONLY_TEXT.into())).await;
    }
}

async fn run_command(app: Arc<DiscordApp>, command: CommandInteraction) {
    let CommandInteraction { id, application_id, data, guild_id, channel_id, member, user, token, .. } = command;
    let way = InteractionRef { id, application: application_id, token };
    let origin = match InteractionOrigin::new(&app, guild_id, channel_id, member.map(|member| *member), user) {
        Ok(origin) => origin,
        Err(unserved) => return answer_unserved(&app, &way, unserved).await,
    };
    if origin.is_direct() && !command_table::is_direct(&data.name) {
        return answer_unserved(&app, &way, Unserved::DirectMessages).await;
    }
    let given = Arguments::from_data(&data);
    let Some(action) = command_table::find_subcommand(&data.name, given.subcommand.as_deref()) else {
        let unknown = "This command no longer exists. Discord will show the current commands in a moment.";
        send_initial_response(&app.rest, &way, &InitialResponse::PrivateMessage(unknown.into())).await;
        return;
    };
    let Ok(room) = app.commands.permits.clone().try_acquire_owned() else {
        send_initial_response(&app.rest, &way, &InitialResponse::PrivateMessage(BUSY_TEXT.into())).await;
        return;
    };
    // Only the caller should read that they lack a right.
    let is_refused = origin
        .known_caller(&app)
        .is_some_and(|by| app.roles.is_loaded(by.guild) && by.check_right(action.right).is_err());
    let private = action.private || is_refused;
    if !send_initial_response(&app.rest, &way, &InitialResponse::Defer { private }).await {
        return;
    }
    let by = match origin.caller(&app).await {
        Ok(by) => by,
        Err(failure) => return send_outcome(&app, &way, private, Err(failure)).await,
    };
    by.find_thread().await;
    tracing::debug!(command = data.name, sub = given.subcommand, by = %by.member.requester, guild = %by.guild, "a command");
    let call = Invocation { caller: by.clone(), args: given };
    let done = run_to_completion(&app.stop, async move { run_if_permitted(action, &call).await }).await;
    let summary_of = done.as_ref().ok().and_then(|reply| reply.summary_of.clone());
    send_outcome(&app, &way, private, done).await;
    drop(room);
    if let Some(session) = summary_of {
        tokio::select! {
            reply = context::wait_for_summary(&by, session) => if let Some(reply) = reply { interaction_sender::send_edit(&app, &way, &reply).await },
            () = app.stop.cancelled() => {}
        }
    }
}

/// Runs `work` to its end in a task of its own, even if the daemon stops and nobody waits for the result any more.
async fn run_to_completion<T: Send + 'static>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::select! {
        done = chorus_runtime::spawn(work) => done.unwrap_or_else(|e| Err(Error::internal(e.to_string()))),
        () = wait_stop_grace(stop) => Err(Error::new(ErrorKind::Stopping, "Chorus is stopping; the command may or may not have finished")
            .hint("check after it has restarted")),
    }
}

/// Waits until the daemon stops, and `STOP_GRACE` longer.
async fn wait_stop_grace(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

async fn run_if_permitted(action: &Subcommand, call: &Invocation) -> Result<Response> {
    call.caller.check_right(action.right)?;
    (action.run)(call).await
}

/// Answers an autocomplete request, that is, suggests values while an option is typed.
async fn answer_autocomplete(app: Arc<DiscordApp>, command: CommandInteraction) {
    let CommandInteraction { id, application_id, data, guild_id, channel_id, member, user, token, .. } = command;
    let way = InteractionRef { id, application: application_id, token };
    let Ok(origin) = InteractionOrigin::new(&app, guild_id, channel_id, member.map(|member| *member), user) else {
        return;
    };
    let room = app.commands.permits.clone().try_acquire_owned();
    let given = Arguments::from_data(&data);
    let mut choices = Vec::new();
    if let (Ok(_), Some(action), Some(typed)) =
        (&room, command_table::find_subcommand(&data.name, given.subcommand.as_deref()), data.autocomplete())
    {
        // Without a request if possible: Discord waits three seconds.
        let by = match origin.known_caller(&app) {
            Some(by) => Some(by),
            None => origin.caller(&app).await.ok(),
        };
        if let Some(by) = by {
            choices = autocomplete::suggest_choices(&by, action, &given, typed.name, typed.value).await;
        }
    }
    send_initial_response(&app.rest, &way, &InitialResponse::Choices(choices)).await;
}
