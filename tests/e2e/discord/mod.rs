//! Agents in the channels of a Discord server: the real daemon against the fake of the harness.

mod answers;
mod approvals;
mod burst;
mod commands;
mod drops;
mod fake;
mod gateway;
mod messages;
mod notices;
mod rooms;
mod story;
mod strangers;
mod troubles;
