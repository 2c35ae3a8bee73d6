//! `chorusctl settings`: one module per subcommand; the default is `show`.

pub mod set;
pub mod show;

group! {
    /// See the configuration in force, and set what agents have by default
    enum Verb or show {
        /// Show every key with its value and where that comes from; the same as no command
        Show(show::Args),
        /// Set default_model, permissions or idle_timeout, at once and for good
        Set(set::Args),
    }
}
