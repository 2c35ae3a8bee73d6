//! Agents in the channels of a Discord server: the real daemon against the fake of the harness.

mod answers;
mod commands;
mod fake;
mod gateway;
mod rooms;
