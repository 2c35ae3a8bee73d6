//! Faults of the machine around Chorus, one by one: files, databases, descriptors, programs and signals.

mod catalog;
mod descriptors;
mod destroy;
mod files;
mod init;
mod stop;
