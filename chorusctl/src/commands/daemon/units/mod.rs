//! The files that `chorusctl daemon install` writes: one module each.

mod export_timer;
mod launchd;
mod quote;
mod service;
mod socket;

use std::path::Path;

pub(super) use export_timer::{EXPORT_SERVICE_NAME, EXPORT_TIMER_NAME, render_export_service, render_export_timer};
pub(super) use launchd::{PLIST_NAME, render_plist};
pub(super) use service::{SERVICE_NAME, render_service};
pub(super) use socket::{SOCKET_UNIT_NAME, render_socket};

/// First line of every unit that Chorus wrote. Units without it belong to the user and are not overwritten.
pub(super) const HEADER: &str = "# Written by `chorusctl daemon install`.";

/// The daemon, and what selects its instance.
pub(super) struct Instance<'a> {
    /// The absolute path of chorusd.
    pub(super) daemon: &'a Path,
    /// The absolute path of chorusctl.
    pub(super) client: &'a Path,
    /// `--socket` of the command line.
    pub(super) socket: Option<&'a Path>,
    /// Environment variables, such as `CHORUS_HOME`, with their values.
    pub(super) environment: &'a [(&'a str, String)],
}

impl Instance<'_> {
    /// Returns the lines `Environment=`.
    fn environment_lines(&self) -> Result<String, String> {
        let line =
            |(name, value): &(&str, String)| Ok(format!("Environment={}\n", quote::word(&format!("{name}={value}"))?));
        self.environment.iter().map(line).collect()
    }

    /// Returns ` --socket PATH`, if it was given.
    fn socket_argument(&self) -> Result<String, String> {
        let Some(socket) = self.socket else { return Ok(String::new()) };
        Ok(format!(" --socket {}", quote::argument(quote::path_str(socket)?)?))
    }
}
