//! The permission engine: matches an action string against the patterns of a profile and returns a verdict with the
//! rule that decided.
//!
//! Everything here is pure: the verdict depends on the profile, the action and the paths of the workspace only.
//! docs/PERMISSIONS.md describes how shell commands are parsed and what the patterns see of them.
//!
//! `examples/judge_action.rs` judges an action by a preset or an inline profile. In code:
//!
//! ```
//! use chorus_permissions::{Profile, ProfileSpec};
//! use chorus_proto::methods::permissions::{BashMode, Decision};
//!
//! let spec = ProfileSpec {
//!     bash: BashMode::Parsed,
//!     allow: vec!["tool:bash:git status".into(), "tool:bash:ls( .*)?".into()],
//!     deny: vec!["tool:bash:rm( .*)?".into()],
//!     ..ProfileSpec::default()
//! };
//! let profile = Profile::new(spec)?;
//! assert_eq!(profile.judge("tool:bash:git status").decision, Decision::Allow);
//! // Each part of a command is judged by itself, and the strictest verdict wins.
//! assert_eq!(profile.judge("tool:bash:ls && rm -r x").decision, Decision::Deny);
//! # Ok::<(), chorus_permissions::ProfileError>(())
//! ```

#![warn(unreachable_pub)]

mod action;
mod agent_rules;
mod approved_actions;
mod grantable_profiles;
mod literal_prefixes;
mod presets;
mod profile;
mod profile_spec;
mod profiles;
mod shell;
mod tool_visibility;

pub use action::Action;
pub use agent_rules::{agent_rules_to_json, parse_agent_rules};
pub use grantable_profiles::Grants;
pub use profile::Profile;
pub use profile_spec::{ProfileError, ProfileLocation, ProfileSpec};
pub use profiles::Profiles;
pub use shell::WorkspacePaths;
