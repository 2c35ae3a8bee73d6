//! Everything a person sees: text made safe and measured, tables, colour, time, questions and progress.

pub mod ask;
pub mod branches;
pub mod notes;
pub mod out;
pub mod paint;
pub mod progress;
pub mod safe;
pub mod table;
pub mod terminal;
pub mod text;
pub mod time;
pub mod words;
mod zone;

pub use notes::Notes;
pub use out::Out;
pub use paint::Style;
pub use table::{Cell, Column, Table};
