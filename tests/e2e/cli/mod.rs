//! The command line itself: statuses, shapes, pipes, and the daemon it starts.

mod autostart;
mod chat;
mod json;
mod pipes;
mod send;
mod statuses;
mod summary;
mod waiting;
