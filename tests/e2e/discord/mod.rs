//! Agents in the channels of a Discord server: the real daemon against the fake of the harness.

mod answers;
mod burst;
mod commands;
mod fake;
mod rooms;
mod story;
mod strangers;
