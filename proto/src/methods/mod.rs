//! The methods of the protocol: one type each, with its name on the wire, its parameters and its result.
//!
//! Parameters are the long option names of the command in snake_case, and its positional arguments by name. The agent
//! is `agent`; if it is missing the daemon takes the one chosen with `agent.use`, or the only one that exists.

use serde::Serialize;
use serde::de::DeserializeOwned;

pub mod agent;
pub mod agent_transfer;
pub mod approvals;
pub mod audit;
pub mod backup;
pub mod capture;
pub mod cluster;
pub mod config;
pub mod context;
pub mod continuation;
pub mod conversations;
pub mod daemon;
pub mod doctor;
pub mod events;
pub mod export;
pub mod import;
pub mod memory;
pub mod models;
pub mod notes;
pub mod permissions;
pub mod schedule;
pub mod search;
pub mod send;
pub mod session;
pub mod session_branching;
pub mod settings;
pub mod tasks;
pub mod trash;
pub mod usage;

/// A method of the protocol.
pub trait Method {
    /// The name on the wire, for example `context.append`.
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned;
    type Result: Serialize + DeserializeOwned;
}

/// Declares one [`Method`].
macro_rules! method {
    ($(#[$doc:meta])* $verb:ident = $name:literal, $params:ty => $result:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $verb;
        impl $crate::methods::Method for $verb {
            const NAME: &'static str = $name;
            type Params = $params;
            type Result = $result;
        }
    };
}
pub(crate) use method;

use crate::wire;
