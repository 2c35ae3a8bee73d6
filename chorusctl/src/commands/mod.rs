//! The subcommands, one module each. A new one needs a variant in [`Command`] and an arm in [`run`].

use clap::Subcommand;

use crate::app::App;
use crate::error::Error;

#[macro_use]
mod group;

pub mod agent;
pub mod approvals;
pub mod audit;
pub mod backup;
pub mod cancel;
pub mod chat;
pub mod completions;
pub mod context;
pub mod daemon;
pub mod doctor;
pub mod events;
pub mod format;
pub mod man;
pub mod memory;
pub mod models;
pub mod permissions;
pub mod send;
pub mod session;
pub mod settings;
pub mod status;
pub mod tasks;
pub mod text_input;
pub mod tour;
pub mod transcript;
pub mod trash;
pub mod usage;

/// What to do.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Make, list, choose and configure agents
    Agent(agent::Args),
    /// Send a message to an agent's model, and print the reply as it comes
    Send(send::Args),
    /// End an agent's turn, whoever asked for it
    Cancel(cancel::Args),
    /// Talk with an agent's model
    Chat(chat::Args),
    /// Work with an agent's live conversation
    Context(context::Args),
    /// Look at saved conversations, take them out, and bring others along
    Session(session::Args),
    /// See and change what agents know in every conversation
    Memory(memory::Args),
    /// See which models there are, and whether their providers take the keys
    Models(models::Args),
    /// See what agents may do, and ask what would be allowed
    Permissions(permissions::Args),
    /// See what waits for an answer, and answer it
    Approvals(approvals::Args),
    /// Show what was decided about what agents do
    Audit(audit::Args),
    /// See what agents run in the background, and end it
    Tasks(tasks::Args),
    /// See the configuration in force, and set what agents have by default
    Settings(settings::Args),
    /// Show what calls of models used
    Usage(usage::Args),
    /// Look at what was deleted, bring it back, or let it go
    Trash(trash::Args),
    /// Show the daemon and its agents
    Status(status::Args),
    /// Show what happened, and follow it
    Events(events::Args),
    /// Start, stop and watch the daemon
    Daemon(daemon::Args),
    /// See the whole story in ten seconds, in a home of its own
    Tour(tour::Args),
    /// Back up everything, check a backup or restore one
    Backup(backup::Args),
    /// Check databases, files, models and the machine
    Doctor(doctor::Args),
    /// Print what completes chorusctl in a shell
    Completions(completions::Args),
    /// Print the manual page, or write those of all commands
    Man(man::Args),
}

pub fn run(command: Command, app: &mut App) -> Result<(), Error> {
    match command {
        Command::Agent(args) => agent::run(args, app),
        Command::Send(args) => send::run(args, app),
        Command::Cancel(args) => cancel::run(args, app),
        Command::Chat(args) => chat::run(&args, app),
        Command::Context(args) => context::run(args, app),
        Command::Session(args) => session::run(args, app),
        Command::Memory(args) => memory::run(args, app),
        Command::Models(args) => models::run(args, app),
        Command::Permissions(args) => permissions::run(args, app),
        Command::Approvals(args) => approvals::run(args, app),
        Command::Audit(args) => audit::run(args, app),
        Command::Tasks(args) => tasks::run(args, app),
        Command::Settings(args) => settings::run(args, app),
        Command::Usage(args) => usage::run(args, app),
        Command::Trash(args) => trash::run(args, app),
        Command::Status(args) => status::run(args, app),
        Command::Events(args) => events::run(args, app),
        Command::Daemon(args) => daemon::run(args, app),
        Command::Tour(args) => tour::run(args, app),
        Command::Backup(args) => backup::run(args, app),
        Command::Doctor(args) => doctor::run(&args, app),
        Command::Completions(args) => completions::run(&args, app),
        Command::Man(args) => man::run(&args, app),
    }
}
