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
    /// Create, list, select and configure agents
    enum Verb {
        /// Create an agent, or restore one from kept files
        Init(init::Args),
        /// Save an agent's conversation and delete the agent
        Destroy(destroy::Args),
        /// List agents
        List(list::Args),
        /// Show an agent
        Show(show::Args),
        /// Set the default agent
        Use(use_::Args),
        /// Show or change an agent's settings
        Config(config::Args),
        /// Export a whole agent to one file, for another home or machine
        Export(export::Args),
        /// Create an agent from a file that `agent export` wrote
        Import(import::Args),
    }
}
