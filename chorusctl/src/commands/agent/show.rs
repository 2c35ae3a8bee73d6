//! `chorusctl agent show`: prints one agent with its settings.

use chorus_proto::methods::agent::{Show, ShowParams, ShowResult};
use serde_json::Value;

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Stdout, Style, sanitize, text};

/// Show an agent
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Agent [default: the current one]
    name: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let name = args.name.or_else(|| app.agent());
    app.call_and_print::<Show>(&ShowParams { name }, |app, shown| print_agent(&mut app.stdout, &shown))
}

fn print_agent(out: &mut Stdout, shown: &ShowResult) -> Result<(), Error> {
    let agent = &shown.agent;
    let heading = sanitize::one_line(&agent.name);
    writeln!(out, "{}", out.style(Style::Strong, &heading))?;
    let state = format!("{:?}", agent.state).to_lowercase();
    let context = match &agent.context {
        None => state,
        Some(context) => {
            let activity = out.clock().ago(context.last_activity_at);
            format!("{state}: {}, last activity {activity}", format::context(context))
        }
    };
    write_field(out, "state", &context)?;
    if let Some(deadline) = agent.context.as_ref().and_then(|context| context.idle_deadline_at) {
        let until = out.clock().until(deadline);
        write_field(out, "auto-save", &format!("in {until} unless a message arrives"))?;
    }
    if agent.node.is_some() || agent.unclaimed {
        write_field(out, "node", &format::node(agent))?;
    }
    let created = out.clock().local_date_time(agent.created_at);
    write_field(out, "created", &created)?;
    let sessions = describe_sessions(out, shown);
    write_field(out, "sessions", &sessions)?;
    write_field(out, "directory", &agent.path)?;
    write_field(out, "id", &agent.id.to_string())?;
    let silent = |key: &str| shown.config.get(key).is_none_or(Value::is_null);
    if let Some(model) = agent.model.as_ref().filter(|_| silent("model")) {
        write_field(out, "model", &format!("{model} (default)"))?;
    }
    if silent("permissions") {
        write_field(out, "permissions", &format!("{} (default)", value_text(&agent.permissions)))?;
    }
    if let Some(rules) =
        shown.config.get("permission_rules").and_then(Value::as_array).filter(|rules| !rules.is_empty())
    {
        let more = format!("{} (chorusctl permissions rules {heading})", pluralize(rules.len() as u64, "rule"));
        write_field(out, "permission rules", &more)?;
    }
    let told = ["id", "name", "created_at", "permission_rules"];
    let is_set = |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    for (key, value) in shown.config.iter().filter(|(key, value)| !told.contains(&key.as_str()) && is_set(value)) {
        write_field(out, key, &value_text(value))?;
    }
    Ok(())
}

fn describe_sessions(out: &mut Stdout, shown: &ShowResult) -> String {
    let number = pluralize(shown.sessions, "session");
    match &shown.agent.last_session {
        None => number,
        Some(last) => format!("{number}, last {} ({})", last.session_id, out.clock().ago(last.held_at())),
    }
}

/// Writes `name  value`, with the value wrapped to the terminal's width.
pub fn write_field(out: &mut Stdout, name: &str, value: &str) -> Result<(), Error> {
    const NAMES: usize = 18;
    let mut label = String::from("  ");
    text::pad(&mut label, &sanitize::one_line(name), NAMES, false);
    let value = sanitize::multi_line(value.trim_end());
    let room = out.width().map_or(usize::MAX, |width| width.saturating_sub(NAMES + 4).max(10));
    let lines = if room == usize::MAX { value.lines().map(Into::into).collect() } else { text::wrap(&value, room) };
    for (at, line) in lines.iter().enumerate() {
        let label = if at == 0 { label.as_str() } else { &" ".repeat(NAMES + 2) };
        writeln!(out, "{}", format!("{label}  {line}").trim_end())?;
    }
    if lines.is_empty() { writeln!(out, "{}", label.trim_end()) } else { Ok(()) }
}

/// Formats a setting: strings without quotation marks, null as `(not set)`, an empty list as `(none)`, permission rules as
/// the commands that they allow.
#[must_use]
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "(not set)".to_owned(),
        Value::Array(list) if list.is_empty() => "(none)".to_owned(),
        Value::Array(list) if list.iter().all(|rule| rule["rule"].is_string()) => {
            let rules = list.iter().filter_map(|rule| rule["rule"].as_str());
            rules.collect::<Vec<_>>().join(", ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
