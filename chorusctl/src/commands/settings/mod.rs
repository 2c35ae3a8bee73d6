//! `chorusctl settings`: one module per subcommand; the default is `show`.

pub mod set;
pub mod show;

use crate::app::App;
use crate::ui::stdout::OutputFormat;

/// Names the command that replaces this one, except to programs.
fn hint(app: &App, hint: &str) {
    if app.stdout.format() == OutputFormat::Text && !app.stdout.is_quiet() {
        app.stderr.hint(hint);
    }
}

group! {
    /// Show the effective configuration and change defaults
    enum Verb or show {
        /// Show every key with its value and its source (default)
        Show(show::Args),
        /// Set default_model, permissions or idle_timeout
        Set(set::Args),
    }
}
