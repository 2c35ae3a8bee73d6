//! What an agent may do: an action as a string, a profile of patterns, a verdict with the rule that decided.
//!
//! Pure: the same profile and the same action give the same verdict, whenever and wherever. docs/PERMISSIONS.md says how
//! a command of the shell is taken apart and what of it the patterns see.

mod action;
mod always;
mod grants;
mod offers;
mod presets;
mod profile;
mod profiles;
mod shell;
mod spec;
mod spelled;

pub use action::{Action, BASH};
pub use grants::Grants;
pub use profile::Profile;
pub use profiles::Profiles;
pub use shell::WorkspacePaths;
pub use spec::{Place, Problem, Spec};
