//! What the end-to-end tests and the benches share: a sealed home, a running daemon, the command line, raw
//! connections, and waiting for a condition with a deadline.

pub mod schema;
