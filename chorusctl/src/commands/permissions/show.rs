//! `chorusctl permissions show`: prints one permission profile.

use chorus_proto::methods::permissions::{Show, ShowParams, ShowResult};
use serde_json::Value;

use crate::app::App;
use crate::commands::agent::show::{value_text, write_field};
use crate::error::Error;
use crate::ui::{Stdout, Style};

/// Show a profile with its rules
///
/// Rules are numbered as in `permissions check`. A pattern must match the whole action. The strictest list wins: deny, then ask, then
/// allow, otherwise the default.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Profile
    #[arg(value_name = "NAME")]
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Show>(&ShowParams { name: args.name }, |app, shown| print_profile(&mut app.stdout, &shown))
}

fn print_profile(out: &mut Stdout, shown: &ShowResult) -> Result<(), Error> {
    let from = if shown.info.preset { "preset" } else { "config.toml" };
    writeln!(out, "{}", out.style(Style::Strong, &shown.info.name))?;
    write_field(out, "from", from)?;
    if !shown.info.agents.is_empty() {
        write_field(out, "agents", &shown.info.agents.join(", "))?;
    }
    for (key, value) in shown.profile.as_object().into_iter().flatten() {
        match value {
            Value::Array(entries) => {
                for (index, entry) in entries.iter().enumerate() {
                    write_field(out, &format!("{key}[{index}]"), &format_entry(entry))?;
                }
            }
            other => write_field(out, key, &value_text(other))?,
        }
    }
    Ok(())
}

/// Formats a pattern, or an example as `ask tool:bash:ls`.
fn format_entry(entry: &Value) -> String {
    let part = |key| entry.get(key).and_then(Value::as_str);
    match (part("decision"), part("action")) {
        (Some(decision), Some(action)) => format!("{decision} {action}"),
        _ => value_text(entry),
    }
}
