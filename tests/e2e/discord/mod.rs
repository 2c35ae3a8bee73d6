//! Agents in the channels of a Discord server: the real daemon against the fake of the harness.

mod announcements;
mod approvals;
mod burst;
mod catalog;
mod channels;
mod commands;
mod direct;
mod dropped_events;
mod fake;
mod gateway;
mod inbound;
mod replies;
mod threads;
mod unprivileged_users;
mod unusable_connection;
