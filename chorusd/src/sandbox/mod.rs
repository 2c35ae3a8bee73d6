//! Running commands of agents where they reach their workspace and little else. docs/SANDBOX.md says what that is.
//!
//! The daemon's own program runs again as what is nearest to the command (`inside`): it takes away all that the command
//! is not to have, starts it, and ends everything when the daemon says so or is gone.

#[cfg(target_os = "linux")]
mod bubblewrap;
mod cgroups;
mod environment;
mod guarded;
#[cfg(target_os = "linux")]
pub mod inside;
mod job;
mod level;
mod machine;
mod output;
mod pinned;
#[cfg(target_os = "linux")]
mod places;
mod run;
mod running;
mod wire;

pub use environment::clean as environment;
pub use job::{Confinement, Exit, Job, Limits};
pub use level::{Level, Missing, Way};
pub use machine::Sandbox;
pub use run::{Ran, run, run_redacted};
pub use running::Running;
pub use wire::{Memory, Processes};
