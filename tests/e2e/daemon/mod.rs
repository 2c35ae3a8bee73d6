//! Starting and stopping.

mod autostart;
mod config;
mod databases;
mod hung;
mod install;
mod journald;
mod notify;
mod socket_activation;
mod start;
mod stop;
mod user_manager;
