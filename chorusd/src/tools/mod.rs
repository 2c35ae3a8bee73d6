//! Tools that a model may call. A failure is told to the model as a result; only what leaves the daemon unable to go on ends
//! the turn.

mod background;
mod bash;
mod carry_out;
mod files;
mod kept;
mod list_models;
mod outside;
mod scene;
mod shelf;
mod tool;

pub use carry_out::{asks, carry_out, in_order};
pub use files::{Edit, Locks, Place, Range, Workspace};
pub use kept::result_of;
pub use outside::Outside;
pub use scene::{Scene, World};
pub use shelf::{specs, tokens};
pub use tool::Outcome;
