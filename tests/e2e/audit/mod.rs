//! The audit log: every decision a row, each chained to the one before it, and what changes it found.

mod chain;
mod list;
mod recovery;
