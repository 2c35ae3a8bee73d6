//! `chorusctl config reload`: has the daemon read config.toml again.

use chorus_proto::methods::config::{Reload, ReloadParams, ReloadResult};

use super::offline;
use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::units::pluralize;

/// Keys that are named in a line.
const MAX_NAMED_KEYS: usize = 8;

/// Have the daemon read config.toml again
///
/// Agents at work get what can be applied at once; the other keys are named, and apply after a restart. If the file has an error, the daemon
/// keeps the configuration that it has. SIGHUP does the same, except for a daemon in a terminal, which it stops.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    if !offline::connect_if_running(app)? {
        return Err(Error::no_daemon("no daemon is running")
            .with_hint("a daemon reads the file when it starts: chorusctl daemon start"));
    }
    app.call_and_print::<Reload>(&ReloadParams {}, |app, result| print_reload(app, &result))
}

/// Prints what a reload did.
pub(super) fn print_reload(app: &mut App, result: &ReloadResult) -> Result<(), Error> {
    let path = sanitize::one_line(&result.file.path);
    let line = match result.changed.len() {
        0 => format!("reloaded {path}: nothing else applies than before"),
        count => format!("reloaded {path}: {} changed: {}", pluralize(count as u64, "key"), name_keys(&result.changed)),
    };
    app.stdout.status_line(&line)?;
    app.stdout.flush()?;
    if !result.restart.is_empty() {
        app.stderr.hint(&restart_hint(&result.restart));
    }
    Ok(())
}

/// Says which keys apply after a restart.
pub(super) fn restart_hint(keys: &[String]) -> String {
    let verb = if keys.len() == 1 { "applies" } else { "apply" };
    format!("{} {verb} after a restart: chorusctl daemon restart", name_keys(keys))
}

fn name_keys(keys: &[String]) -> String {
    let named = keys.iter().take(MAX_NAMED_KEYS).map(|key| sanitize::one_line(key));
    let named = named.collect::<Vec<_>>().join(", ");
    match keys.len().saturating_sub(MAX_NAMED_KEYS) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
