//! Threads below the channels of agents. Each thread is a conversation of its own, which its first message creates. It is
//! saved and closed while the thread is archived, and comes back when the thread is opened.

mod archived;
mod cache;
mod events;
mod lifecycle;
mod record;
mod titles;

pub(crate) use cache::{Thread, ThreadCache};
pub(crate) use events::{
    close_if_archived, handle_event, insert_found, learn, load, lookup, mark_active, on_connected,
};
pub(crate) use lifecycle::open;
pub(crate) use record::record;
