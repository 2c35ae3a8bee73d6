//! Checks of request bodies: what Discord accepts, and what Chorus promises in addition.

pub mod channels;
pub mod commands;
pub mod components;
pub mod embeds;
pub mod fields;
pub mod messages;
pub mod threads;
