//! `session export`: the forms, and files in a directory that a cron line keeps up to date.

mod coding_tools;
mod damaged;
mod directory;
mod formats;
mod html;
mod imported;
mod live;
mod paged;
