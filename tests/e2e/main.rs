//! Everything that Chorus promises, shown on the real binaries: a file for each part or promise.

mod schema;
