//! `chorusctl permissions show`.

use chorus_proto::methods::permissions::{Show, ShowParams, ShowResult};
use serde_json::Value;

use crate::app::App;
use crate::commands::agent::show::{field, value_text};
use crate::error::Failure;
use crate::ui::{Out, Style};

/// Show one profile with its rules
///
/// Rules are numbered as `permissions check` names them. A pattern must match the whole action; the strictest list
/// wins: deny, then ask, then allow, else the default.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The profile
    #[arg(value_name = "NAME")]
    name: String,
}

/// Shows it.
///
/// # Errors
/// Why it cannot be shown.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    app.answer::<Show>(&ShowParams { name: args.name }, |app, shown| write(&mut app.out, &shown))
}

fn write(out: &mut Out, shown: &ShowResult) -> Result<(), Failure> {
    let from = if shown.info.preset { "preset" } else { "config.toml" };
    writeln!(out, "{}", out.paint(Style::Strong, &shown.info.name))?;
    field(out, "from", from)?;
    if !shown.info.agents.is_empty() {
        field(out, "agents", &shown.info.agents.join(", "))?;
    }
    for (key, value) in shown.profile.as_object().into_iter().flatten() {
        match value {
            Value::Array(entries) => {
                for (index, entry) in entries.iter().enumerate() {
                    field(out, &format!("{key}[{index}]"), &line(entry))?;
                }
            }
            other => field(out, key, &value_text(other))?,
        }
    }
    Ok(())
}

/// A pattern, or an example as `ask tool:bash:ls`.
fn line(entry: &Value) -> String {
    let part = |key| entry.get(key).and_then(Value::as_str);
    match (part("decision"), part("action")) {
        (Some(decision), Some(action)) => format!("{decision} {action}"),
        _ => value_text(entry),
    }
}
