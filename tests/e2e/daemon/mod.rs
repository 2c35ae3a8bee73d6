//! Starting and stopping.

mod autostart;
mod config;
mod databases;
mod install;
mod notify;
mod socket_activation;
mod start;
mod stop;
