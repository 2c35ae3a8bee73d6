//! `chorusctl store`: where everything is stored.

pub mod copy;

group! {
    /// Copy everything to another database
    enum Verb {
        /// Copy the home's databases to PostgreSQL, or back to SQLite
        Copy(copy::Args),
    }
}
