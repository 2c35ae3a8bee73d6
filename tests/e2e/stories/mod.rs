//! Long stories through the real programs.

mod agent;
mod discord;
