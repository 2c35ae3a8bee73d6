//! The command line itself: statuses, shapes, pipes, and the daemon it starts.

mod autostart;
mod json;
mod pipes;
mod statuses;
mod summary;
mod waiting;
