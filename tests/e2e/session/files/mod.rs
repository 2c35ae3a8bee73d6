//! Session files: how they are written, what their names are, and what happens to damaged ones.

mod damaged;
mod format;
mod names;
mod paging;
