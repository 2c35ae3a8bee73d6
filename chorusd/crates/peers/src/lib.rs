//! Connections between the nodes of a cluster: frames over TLS with certificates on both sides. docs/design/peers.md has
//! the invariants.
//!
//! A *tunnel* stands for one connection of a client whose requests another node carries out. It has a TLS connection to
//! itself, so tunnels do not wait for each other and ids need no rewriting. When both sides have ended it, the TLS
//! connection may carry the next one ([`PeerPool`]). [`PeerListener`] accepts tunnels.
//!
//! This crate knows frames, nodes and certificates. It knows no agents, no operations and no store, and decides nothing
//! about what is forwarded.

#![warn(unreachable_pub)]

mod certificates;
mod credentials;
mod dial;
mod errors;
mod frame_queue;
mod hello;
mod idle;
mod incoming;
mod issue;
mod limits;
mod listener;
mod node;
mod pem_files;
mod pending_handshakes;
mod pool;
mod refusals;
mod settings;
mod settings_checks;
mod socket_options;
mod transport;
mod tunnel;

pub use credentials::ClusterCredentials;
pub use errors::{ConnectError, ConnectErrorKind};
pub use frame_queue::{FrameQueue, Rejected};
pub use issue::{IssueError, Issued, NewNode, issue_certificates};
pub use limits::{ListenerLimits, PoolLimits};
pub use listener::{IncomingTunnel, PeerListener};
pub use node::{LocalNode, Origin, PeerAddress, PeerNode};
pub use pool::PeerPool;
pub use refusals::{Refusal, Refusals};
pub use settings::ClusterSettings;
pub use settings_checks::{CheckState, SettingCheck, check_settings};
pub use transport::{TunnelReader, TunnelWriter};
pub use tunnel::{Outcome, Tunnel};
