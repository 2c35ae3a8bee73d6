//! `chorusctl cluster`: one module per subcommand.

pub mod cert;
pub mod drain;
pub mod forget;
pub mod status;

group! {
    /// Show the nodes of a cluster, and move their agents
    ///
    /// Daemons on several machines that share one PostgreSQL are the nodes of a cluster. Each agent is on one of them, and any of them answers
    /// for all.
    enum Verb or status {
        /// List the nodes (default)
        Status(status::Args),
        /// Move all agents of a node to others
        Drain(drain::Args),
        /// Remove a node that does not come back from the list
        Forget(forget::Args),
        /// Create certificates with which nodes trust each other
        Cert(cert::Args),
    }
}
