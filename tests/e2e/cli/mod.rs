//! The command line itself: statuses, shapes, pipes, and the daemon it starts.

mod columns;
mod exit_status;
mod json;
mod other_versions;
mod pager;
mod pipes;
mod progress;
mod tables;
mod timeouts;
mod top_level;
