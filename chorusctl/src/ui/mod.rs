//! Output for people: sanitized and measured text, tables, colours, times, confirmations and progress.

mod command_text;
pub mod confirm;
pub mod full_screen;
pub mod interruption;
pub mod job_control;
mod local_timezone;
pub mod markdown;
pub mod markdown_stream;
pub mod marked_text;
mod pager;
pub mod progress_bar;
pub mod spinner;
pub mod stderr;
pub mod stdout;
pub mod style;
mod styled_words;
pub mod table;
pub mod terminal;
pub mod time;

pub use chorus_terminal_text::{column_chart, meter, sanitize, session_tree, text, units};
pub use command_text::{ChatCommands, CommandText};
pub use stderr::Stderr;
pub use stdout::Stdout;
pub use style::Style;
pub use table::{Cell, Column, RowArgs, Table, TableArgs};
