//! `chorusctl agent`: one module per subcommand.

pub mod config;
pub mod destroy;
pub mod export;
pub mod import;
pub mod init;
pub mod list;
pub mod show;
pub mod use_;

group! {
    /// Make, list, choose and configure agents
    enum Verb {
        /// Make an agent, or revive one whose files were kept
        Init(init::Args),
        /// Save an agent's conversation and take the agent away
        Destroy(destroy::Args),
        /// List the agents
        List(list::Args),
        /// Show one agent
        Show(show::Args),
        /// Choose the agent that is meant when none is named
        Use(use_::Args),
        /// Show or change an agent's settings
        Config(config::Args),
        /// Write a whole agent into one file, for another home or machine
        Export(export::Args),
        /// Make an agent from such a file
        Import(import::Args),
    }
}
