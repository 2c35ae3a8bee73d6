//! What an agent may do: an action as a string, a profile of patterns, a verdict with the rule that decided.
//!
//! Pure: the same profile and the same action give the same verdict, whenever and wherever. docs/PERMISSIONS.md says how
//! a command of the shell is taken apart and what of it the patterns see.

mod action;
mod approved_actions;
mod grants;
mod literal_prefixes;
mod presets;
mod profile;
mod profile_spec;
mod profiles;
mod shell;
mod tool_visibility;

pub use action::{Action, BASH_PREFIX};
pub use grants::Grants;
pub use profile::Profile;
pub use profile_spec::{ProfileError, ProfileLocation, ProfileSpec};
pub use profiles::Profiles;
pub use shell::WorkspacePaths;
