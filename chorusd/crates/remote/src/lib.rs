//! Connections to a daemon on another machine, over the user's own ssh: `chorusctl --host`.
//!
//! ssh runs `chorusctl daemon dial-stdio` there, whose standard input and output are a connection to the daemon. Further connections
//! share the line of the first one, which ssh keeps open for a minute (ControlMaster).
//!
//! Invariant: only the connection that a person has asked for may ask for a password or a new host key; all later ones fail instead.
//!
//! Absent on purpose: ports, keys and a protocol of our own; what to do if a line is lost.

#![warn(unreachable_pub)]

mod address;
mod config_table;
mod control_path;
mod error;
mod explain;
mod host;
mod ssh;

pub use address::DaemonAddress;
pub use config_table::host_names;
pub use error::RemoteError;
pub use host::Host;
pub use ssh::{Prompts, RemoteCommand, Ssh};
