//! `trash list|restore|empty`, and what a crash leaves of a move to the trash.

mod commands;
mod interrupted;
