//! What agents say in channels: it grows, it ends, it is there once.

mod faults;
mod killed;
mod live;
mod long;
mod rig;
mod secrets;
