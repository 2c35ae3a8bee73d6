//! Runs commands of agents with access to their workspace and little else. docs/SANDBOX.md has the details.
//!
//! The daemon starts its own program again as the helper ([`helper`]), which confines itself, starts the command, and
//! kills all its processes when the daemon asks for it or is gone.

#![warn(unreachable_pub)]

#[cfg(target_os = "linux")]
mod bubblewrap;
mod cgroups;
mod child;
mod command_spec;
mod confinement_level;
mod environment;
#[cfg(target_os = "linux")]
mod git_author;
mod git_settings;
#[cfg(target_os = "linux")]
pub mod helper;
mod launcher;
#[cfg(target_os = "linux")]
mod mounts;
mod output;
mod own_program;
mod protocol;
mod root_only_files;
mod run;
#[cfg(target_os = "linux")]
mod shared_paths;

pub use child::SandboxChild;
pub use command_spec::{CommandSpec, Confinement, Exit, PathAccess, ResourceLimits, SharedPath};
pub use confinement_level::{ConfinementLevel, Isolation, MissingProtection};
pub use environment::build_environment as environment;
pub use launcher::Sandbox;
pub use protocol::{MemoryBound, ProcessBound};
pub use run::{CommandOutcome, run, run_redacted};
