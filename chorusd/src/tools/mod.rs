//! Tools that a model may call. A failure is told to the model as a result; only what leaves the daemon unable to go on ends
//! the turn.

mod agent_locks;
mod background;
mod bash;
mod carry_out;
mod files;
mod git;
mod kept;
mod list_agents;
mod list_models;
mod outside;
mod remember;
mod scene;
mod search_sessions;
mod self_edit;
mod send_to_agent;
mod shelf;
mod told;
mod tool;
pub mod unconfined;

pub use carry_out::{asks, carry_out, in_order};
pub use files::{Edit as FileEdit, Locks, Place, Range, Workspace, cleaned_action, workspace_paths};
pub use git::checkpoint;
pub use git::{settings as git_settings, variables as git_variables};
pub use kept::result_of;
pub use outside::{Asker, Outside, SelfEdit};
pub use scene::{Scene, World};
pub use shelf::{Offer, offer, specs};
pub use tool::Outcome;

use told::told;
