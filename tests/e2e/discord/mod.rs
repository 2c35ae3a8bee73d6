//! Agents in the channels of a Discord server: the real daemon against the fake of the harness.

mod answers;
mod approvals;
mod commands;
mod drops;
mod fake;
mod gateway;
mod notices;
mod rooms;
