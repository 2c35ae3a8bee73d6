//! Faults of the machine around Chorus, one by one: files, databases, descriptors, programs and signals.

mod agent_destroy;
mod agent_init;
mod atomic_save;
mod catalog;
mod clock;
mod descriptors;
pub mod full_disk;
mod missing_files;
mod signals;
