//! `chorusctl settings`: one module per subcommand; the default is `show`.

pub mod set;
pub mod show;

group! {
    /// Show the effective configuration and change defaults
    enum Verb or show {
        /// Show every key with its value and its source (default)
        Show(show::Args),
        /// Set default_model, permissions or idle_timeout
        Set(set::Args),
    }
}
