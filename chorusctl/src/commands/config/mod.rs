//! `chorusctl config`: one module per subcommand; the default is `show`.

mod apply;
pub mod check;
pub mod edit;
pub mod get;
mod offline;
pub mod path;
pub mod reload;
pub mod set;
pub mod show;
pub mod unset;

/// Keys that `settings set` may have stored, with the names that it has for them. These names are understood here, too.
const STORED_KEYS: [(&str, &str); 3] = [
    ("default_model", "default_model"),
    ("defaults.permissions", "permissions"),
    ("defaults.idle_timeout", "idle_timeout"),
];

group! {
    /// Show, change and check the configuration
    ///
    /// A value comes from the environment, `settings set`, the file config.toml or the default, in this order. The daemon reads the file when
    /// it starts, and again after each change by these commands. In a cluster, each node has its own file.
    enum Verb or show {
        /// Show every key with its value and its source (default)
        Show(show::Args),
        /// Print the value of a key
        Get(get::Args),
        /// Set a key in config.toml
        Set(set::Args),
        /// Remove a key from config.toml
        Unset(unset::Args),
        /// Edit config.toml, and check it before it is replaced
        Edit(edit::Args),
        /// Check a configuration file
        Check(check::Args),
        /// Print the path of config.toml
        Path(path::Args),
        /// Have the daemon read config.toml again
        Reload(reload::Args),
    }
}
