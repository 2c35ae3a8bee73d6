//! Running commands of agents where they reach their workspace and little else. docs/SANDBOX.md says what that is.
//!
//! The daemon's own program runs again as what is nearest to the command (`inside`): it takes away all that the command
//! is not to have, starts it, and ends everything when the daemon says so or is gone.

#[cfg(target_os = "linux")]
mod bubblewrap;
mod cgroups;
mod child;
mod command_spec;
mod confinement_level;
mod environment;
mod git_settings;
#[cfg(target_os = "linux")]
pub mod helper;
mod launcher;
#[cfg(target_os = "linux")]
mod mounts;
mod output;
mod protocol;
mod root_only_files;
mod run;

pub use child::SandboxChild;
pub use command_spec::{CommandSpec, Confinement, Exit, ResourceLimits};
pub use confinement_level::{ConfinementLevel, Isolation, MissingProtection};
pub use environment::build_environment as environment;
pub use launcher::Sandbox;
pub use protocol::{MemoryBound, ProcessBound};
pub use run::{CommandOutcome, run, run_redacted};
