//! `chorusctl agent config`: shows or changes an agent's settings.

use chorus_proto::methods::agent::{Config, ConfigParams, ConfigResult};
use serde_json::Value;

use super::{init, show};
use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Show or change an agent's settings
///
/// Without KEY, shows all settings; without VALUE, shows that one. The key `name` renames the agent.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Agent
    name: String,
    /// Setting, e.g. idle_timeout
    key: Option<String>,
    /// New value; for system_prompt, @FILE reads it from a file
    value: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let value = match (args.key.as_deref(), args.value) {
        (Some("system_prompt"), Some(value)) => Some(init::text_or_file(value)?),
        (_, value) => value,
    };
    let changed = value.is_some();
    let params = ConfigParams { name: args.name, key: args.key.clone(), value: value.map(Value::String) };
    app.call_and_print::<Config>(&params, |app, result| match args.key.as_deref() {
        Some(key) if changed => print_change(app, key, &result),
        Some(key) => match result.config.get(key).filter(|value| !value.is_null()) {
            Some(value) => writeln!(app.stdout, "{}", sanitize::multi_line(&show::value_text(value))),
            None => {
                app.stderr.line(&format!("{key} is not set (using the default)"));
                Ok(())
            }
        },
        None => result
            .config
            .iter()
            .try_for_each(|(key, value)| show::write_field(&mut app.stdout, key, &show::value_text(value))),
    })
}

fn print_change(app: &mut App, key: &str, result: &ConfigResult) -> Result<(), Error> {
    let short = |value: &Value| sanitize::one_line(&show::value_text(value)).chars().take(60).collect::<String>();
    let new = result.config.get(key).map(short).unwrap_or_default();
    let old = result.old.as_ref().filter(|old| !old.is_null()).map(|old| format!("{} → ", short(old)));
    let line =
        format!("{}: {}{new}", app.stdout.style(Style::Strong, &sanitize::one_line(key)), old.unwrap_or_default());
    app.stdout.status_line(&line)
}
