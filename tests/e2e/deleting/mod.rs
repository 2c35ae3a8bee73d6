//! What goes away: to the trash and back, and for good.

mod delete;
mod purge;
mod tags;
mod trash;
