//! What goes away: to the trash and back, and for good.

mod cut_short;
mod delete;
mod expire;
mod purge;
mod tags;
mod trash;
