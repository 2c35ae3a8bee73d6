//! The details of one agent in `chorusctl status AGENT`.

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::{Agent, WorkingSet};

use super::agent::show::{value_text, write_field};
use super::notes::print::write_working_set;
use super::{conversations, format};
use crate::app::App;
use crate::error::Error;
use crate::ui::units::pluralize;

/// Width of the meter of the context.
const METER_COLUMNS: usize = 31;
/// Maximum number of notes of each kind.
const MAX_NOTES: usize = 5;

/// Prints the model, the permission profile, the turn, the conversation, why the agent does not answer, its last session and what is known in its
/// conversation.
pub(super) fn print(app: &mut App, agent: &Agent) -> Result<(), Error> {
    app.stdout.text("\n")?;
    let out = &mut app.stdout;
    write_field(out, "model", agent.model.as_deref().unwrap_or("(not set)"))?;
    let profile = match &agent.permissions {
        name if name.is_string() => value_text(name),
        _ => "its own rules (chorusctl permissions show)".to_owned(),
    };
    write_field(out, "permissions", &profile)?;
    write_field(out, "tools work in", &format::workspace(agent))?;
    if let Some(blocked) = &agent.blocked {
        let hint = blocked.hint.as_deref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        write_field(out, "does not answer", &format!("{}{hint}", blocked.reason))?;
    }
    if let Some(problem) = &agent.problem {
        write_field(out, "problem", problem)?;
    }
    if let Some(turn) = &agent.turn {
        write_field(out, "turn", &format::turn(turn))?;
    }
    if let Some(context) = &agent.context {
        write_field(out, "conversation", &format::context(context))?;
        let meter = context.meter.as_ref().filter(|_| out.width().is_some());
        if let Some(meter) = meter.and_then(|meter| format::context_meter(meter, METER_COLUMNS)) {
            write_field(out, "context", &meter)?;
        }
    }
    if !agent.attached.is_empty() {
        write_field(out, "open in", conversations::open_in(&agent.attached).trim_start_matches("open in "))?;
    }
    let beside: Vec<_> = agent.conversations.iter().map(conversations::describe).collect();
    if !beside.is_empty() {
        write_field(out, "also live", &beside.join("\n"))?;
    }
    if agent.approvals > 0 {
        write_field(out, "approvals", &format!("{} pending (chorusctl approvals)", agent.approvals))?;
    }
    if let Some(last) = &agent.last_session {
        let age = out.clock().ago(last.held_at());
        let subject = format::subject(last.description.as_deref(), last.summary.as_deref());
        let about = format!("{} ({}, {age})", last.session_id, pluralize(last.message_count, "message"));
        write_field(out, "last session", &about)?;
        write_field(out, "", &subject)?;
    }
    if agent.context.is_none() {
        return Ok(());
    }
    let params = ShowParams { agent: Some(agent.name.clone()), limit: Some(0), ..ShowParams::default() };
    let set = app.call::<Show>(&params)?.working_set;
    if set != (WorkingSet { token_budget: set.token_budget, ..WorkingSet::default() }) {
        app.stdout.text("\n")?;
    }
    write_working_set(app, &set, MAX_NOTES)
}
