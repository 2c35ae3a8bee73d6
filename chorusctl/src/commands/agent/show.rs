//! `chorusctl agent show`.

use chorus_proto::methods::agent::{Show, ShowParams, ShowResult};
use serde_json::Value;

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::words::count;
use crate::ui::{Out, Style, safe, text};

/// Show one agent
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent; the one that is meant, where left out
    name: Option<String>,
}

/// Shows it.
///
/// # Errors
/// Why it cannot be shown.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let name = args.name.or_else(|| app.agent());
    app.answer::<Show>(&ShowParams { name }, |app, shown| write(&mut app.out, &shown))
}

fn write(out: &mut Out, shown: &ShowResult) -> Result<(), Failure> {
    let agent = &shown.agent;
    let heading = safe::one_line(&agent.name);
    writeln!(out, "{}", out.paint(Style::Strong, &heading))?;
    let state = format!("{:?}", agent.state).to_lowercase();
    let context = match &agent.context {
        None => state,
        Some(context) => {
            let activity = out.clock().ago(context.last_activity_at);
            format!("{state}: {}, last activity {activity}", describe::context(context))
        }
    };
    field(out, "state", &context)?;
    if let Some(deadline) = agent.context.as_ref().and_then(|context| context.idle_deadline_at) {
        let until = out.clock().until(deadline);
        field(out, "put away", &format!("in {until} without a message"))?;
    }
    let created = out.clock().local(agent.created_at);
    field(out, "created", &created)?;
    let sessions = sessions(out, shown);
    field(out, "sessions", &sessions)?;
    field(out, "directory", &agent.path)?;
    field(out, "id", &agent.id.to_string())?;
    let silent = |key: &str| shown.config.get(key).is_none_or(Value::is_null);
    if let Some(model) = agent.model.as_ref().filter(|_| silent("model")) {
        field(out, "model", &format!("{model} (the default)"))?;
    }
    if silent("permissions") {
        field(out, "permissions", &format!("{} (the default)", value_text(&agent.permissions)))?;
    }
    let told = ["id", "name", "created_at"];
    for (key, value) in shown.config.iter().filter(|(key, value)| !told.contains(&key.as_str()) && !value.is_null()) {
        field(out, key, &value_text(value))?;
    }
    Ok(())
}

fn sessions(out: &mut Out, shown: &ShowResult) -> String {
    let number = count(shown.sessions, "session");
    match &shown.agent.last_session {
        None => number,
        Some(last) => format!("{number}, last {} ({})", last.session_id, out.clock().ago(last.saved_at)),
    }
}

/// Writes `name  value`, the value within the terminal.
///
/// # Errors
/// [`Failure`] when standard output does not take it.
pub fn field(out: &mut Out, name: &str, value: &str) -> Result<(), Failure> {
    const NAMES: usize = 18;
    let mut label = String::from("  ");
    text::pad(&mut label, &safe::one_line(name), NAMES, false);
    let value = safe::clean(value.trim_end());
    let room = out.width().map_or(usize::MAX, |width| width.saturating_sub(NAMES + 4).max(10));
    let lines = if room == usize::MAX { value.lines().map(Into::into).collect() } else { text::wrap(&value, room) };
    for (at, line) in lines.iter().enumerate() {
        let label = if at == 0 { label.as_str() } else { &" ".repeat(NAMES + 2) };
        writeln!(out, "{}", format!("{label}  {line}").trim_end())?;
    }
    if lines.is_empty() { writeln!(out, "{}", label.trim_end()) } else { Ok(()) }
}

/// A setting without quotation marks; one that is not set says so.
#[must_use]
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "(not set)".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
