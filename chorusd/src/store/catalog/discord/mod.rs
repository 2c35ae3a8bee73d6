//! What lasts of the connection to Discord: a file for each table.

pub mod outbox;
