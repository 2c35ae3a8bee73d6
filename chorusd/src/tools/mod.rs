//! Tools that a model may call. A failure is told to the model as a result; only what leaves the daemon unable to go on ends
//! the turn.

mod agent_locks;
mod carry_out;
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

pub use carry_out::carry_out;
pub use kept::result_of;
pub use outside::{Asker, Outside, SelfEdit};
pub use scene::{Scene, World};
pub use shelf::specs;
pub use tool::Outcome;

use told::told;
