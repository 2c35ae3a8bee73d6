//! Starting and stopping.

mod config;
mod databases;
mod start;
mod stop;
