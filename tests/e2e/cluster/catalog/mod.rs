//! The catalog in PostgreSQL: its tables have the results that those of SQLite have.

mod agents;
mod approvals;
mod audit;
mod both;
mod faults;
mod fences;
mod file_writes;
mod imported_usage;
mod memories;
mod rows;
mod settings;
mod tasks;
mod usage;
