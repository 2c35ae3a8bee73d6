//! What Discord takes, and what Chorus promises to send.

pub mod channels;
pub mod commands;
pub mod components;
pub mod embeds;
pub mod fields;
pub mod messages;
