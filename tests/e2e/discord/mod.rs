//! Agents in the channels of a Discord server: the real daemon against the fake of the harness.

mod messages;
