//! What agents say in channels: it grows, it ends, it is there once.

mod crash;
mod faults;
mod fixture;
mod live_message;
mod rendering;
mod secrets;
