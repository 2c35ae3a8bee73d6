//! Direct messages: each person who may write to the agent of `dm_agent` has a conversation with it.

mod access;
mod channels;
mod record;

pub(crate) use access::{Access, Membership, check_access, refusal_text};
pub(crate) use channels::{DirectChannel, DirectChannels};
pub(crate) use record::{ensure_recorded, is_recorded, learn, load, mark_unserved, observe, register, skip_unserved};
