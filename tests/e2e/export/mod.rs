//! `session export`: the forms, and files in a directory that a cron line keeps up to date.

mod folders;
mod forms;
mod html;
mod pieces;
