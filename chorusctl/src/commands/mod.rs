//! The subcommands, one module each. A new one needs a variant in [`Command`] and an arm in [`run`].

use clap::Subcommand;

use crate::app::App;
use crate::error::Error;

#[macro_use]
mod group;

pub mod agent;
mod agent_details;
pub mod approvals;
pub mod audit;
pub mod backup;
pub mod cancel;
pub mod capture;
pub mod chat;
pub mod cluster;
pub mod completions;
pub mod config;
pub mod context;
pub mod conversations;
pub mod daemon;
pub mod doctor;
pub mod events;
pub mod format;
pub mod help;
pub mod help_groups;
pub mod hooks;
pub mod man;
pub mod mcp;
pub mod memory;
pub mod message_range;
pub mod message_role;
pub mod models;
pub mod notes;
mod offline_chorusd;
pub mod permissions;
pub mod project;
pub mod resume_in;
pub mod schedule;
pub mod search;
pub mod send;
pub mod session;
pub mod settings;
pub mod show;
pub mod status;
pub mod store;
pub mod sync;
pub mod tasks;
pub mod text_input;
pub mod top;
pub mod tour;
pub mod transcript;
pub mod trash;
pub mod undo;
pub mod usage;
pub mod web;

/// The subcommands, in the order of the groups in which the help lists them.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Save a checkpoint (the conversation continues)
    Save(context::save::Args),
    /// List saved conversations, newest first
    #[command(visible_aliases = ["list", "ls"])]
    History(context::history::Args),
    /// Find messages in saved and live conversations
    Search(search::Args),
    /// Show the live conversation, or a saved one
    Show(show::Args),
    /// Load a saved conversation
    Restore(context::restore::Args),
    /// Start a new conversation from a saved one's summary
    Resume(context::resume::Args),
    /// Continue a conversation in another coding agent
    ResumeIn(resume_in::Args),
    /// Undo the last turns
    Undo(undo::Args),
    /// Send a message to an agent's model and print the reply
    Send(send::Args),
    /// Talk with an agent's model
    Chat(chat::Args),
    /// Show the daemon and its agents
    Status(status::Args),
    /// Show everything on one screen, and answer there
    Top(top::Args),
    /// Show everything in the browser, and answer there
    Web(web::Args),
    /// Keep what other coding agents say, as they say it
    Capture(capture::Args),
    /// Import conversations from other programs
    Import(session::import::Args),
    /// Export saved conversations to standard output or to files
    Export(session::export::Args),
    /// Move a saved conversation to the trash
    Rm(session::delete::Args),
    /// Manage the live conversation
    Context(context::Args),
    /// List, create, close and select an agent's conversations
    Conversations(conversations::Args),
    /// Show, export, import and manage saved conversations
    Session(session::Args),
    /// Manage facts, decisions, open tasks and conflicts
    Notes(notes::Args),
    /// List, restore or permanently delete trashed items
    Trash(trash::Args),
    /// Create, list, select and configure agents
    Agent(agent::Args),
    /// Manage what an agent always remembers
    Memory(memory::Args),
    /// List models and check API keys
    Models(models::Args),
    /// Send an agent a message at certain times
    Schedule(schedule::Args),
    /// List, follow and stop background commands
    Tasks(tasks::Args),
    /// Cancel an agent's running turn
    Cancel(cancel::Args),
    /// Show the effective configuration and change defaults
    #[command(hide = true)]
    Settings(settings::Args),
    /// Exchange saved conversations with another machine over ssh
    Sync(sync::Args),
    /// Let coding tools search and keep conversations (MCP server)
    Mcp(mcp::Args),
    /// Let Claude Code recall and save conversations automatically
    Hooks(hooks::Args),
    /// Show token usage and cost
    Usage(usage::Args),
    /// List and answer pending approvals
    Approvals(approvals::Args),
    /// Show permission profiles and test actions against them
    Permissions(permissions::Args),
    /// Show the audit log
    Audit(audit::Args),
    /// Show or follow events
    Events(events::Args),
    /// Start, stop and inspect the daemon
    Daemon(daemon::Args),
    /// Show, change and check the configuration
    Config(config::Args),
    /// Check the installation for problems
    Doctor(doctor::Args),
    /// Show the nodes of a cluster, and move their agents
    Cluster(cluster::Args),
    /// Back up everything; verify or restore a backup
    Backup(backup::Args),
    /// Copy everything to another database
    Store(store::Args),
    /// Run a ten-second demo in a temporary directory
    Tour(tour::Args),
    /// Generate shell completions
    Completions(completions::Args),
    /// Print or install man pages
    Man(man::Args),
    /// Show the help of a command
    Help(help::Args),
}

pub fn run(command: Command, app: &mut App) -> Result<(), Error> {
    match command {
        Command::Save(args) => context::save::run(args, app),
        Command::History(args) => context::history::run(args, app),
        Command::Search(args) => search::run(args, app),
        Command::Show(args) => show::run(args, app),
        Command::Restore(args) => context::restore::run(args, app),
        Command::Resume(args) => context::resume::run(args, app),
        Command::ResumeIn(args) => resume_in::run(args, app),
        Command::Undo(args) => undo::run(args, app),
        Command::Send(args) => send::run(args, app),
        Command::Chat(args) => chat::run(&args, app),
        Command::Status(args) => status::run(args, app),
        Command::Top(args) => top::run(&args, app),
        Command::Web(args) => web::run(&args, app),
        Command::Capture(args) => capture::run(args, app),
        Command::Import(args) => session::import::run(args, app),
        Command::Export(args) => session::export::run(args, app),
        Command::Rm(args) => session::delete::run(args, app),
        Command::Context(args) => context::run(args, app),
        Command::Conversations(args) => conversations::run(args, app),
        Command::Session(args) => session::run(args, app),
        Command::Trash(args) => trash::run(args, app),
        Command::Agent(args) => agent::run(args, app),
        Command::Memory(args) => memory::run(args, app),
        Command::Notes(args) => notes::run(args, app),
        Command::Models(args) => models::run(args, app),
        Command::Schedule(args) => schedule::run(args, app),
        Command::Tasks(args) => tasks::run(args, app),
        Command::Cancel(args) => cancel::run(args, app),
        Command::Settings(args) => settings::run(args, app),
        Command::Sync(args) => sync::run(&args, app),
        Command::Mcp(args) => mcp::run(args, app),
        Command::Hooks(args) => hooks::run(&args, app),
        Command::Usage(args) => usage::run(args, app),
        Command::Approvals(args) => approvals::run(args, app),
        Command::Permissions(args) => permissions::run(args, app),
        Command::Audit(args) => audit::run(args, app),
        Command::Events(args) => events::run(args, app),
        Command::Daemon(args) => daemon::run(args, app),
        Command::Config(args) => config::run(args, app),
        Command::Doctor(args) => doctor::run(&args, app),
        Command::Cluster(args) => cluster::run(args, app),
        Command::Backup(args) => backup::run(args, app),
        Command::Store(args) => store::run(args, app),
        Command::Tour(args) => tour::run(args, app),
        Command::Completions(args) => completions::run(&args, app),
        Command::Man(args) => man::run(&args, app),
        Command::Help(args) => help::run(&args, app),
    }
}
