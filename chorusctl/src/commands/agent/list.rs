//! `chorusctl agent list`.

use chorus_proto::methods::agent::{List, ListParams, ListResult};
use chorus_proto::{Agent, AgentStatus};

use crate::app::{App, read};
use crate::commands::describe;
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;
use crate::ui::{Cell, Column, Out, Style, Table, safe};

/// List the agents
///
/// A `*` marks the one chosen with `agent use`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Destroyed agents too
    #[arg(long)]
    all: bool,
}

/// Lists them.
///
/// # Errors
/// Why there is no list.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let raw = app.call_raw::<List>(&ListParams { all: args.all })?;
    match app.out.format() {
        Format::Json => app.out.json_line(&raw),
        Format::Jsonl => reply::lines(&mut app.out, &raw, "agents"),
        Format::Text => {
            let list: ListResult = read(&raw)?;
            if list.agents.is_empty() {
                app.notes.line("no agents yet");
                app.notes.hint("chorusctl agent init NAME");
                return Ok(());
            }
            table(&mut app.out, &list)
        }
    }
}

fn table(out: &mut Out, list: &ListResult) -> Result<(), Failure> {
    let mut table = Table::new([
        Column::new(""),
        Column::new("NAME"),
        Column::new("STATE"),
        Column::new("MESSAGES").right(),
        Column::new("ACTIVITY"),
        Column::new("MODEL").optional(),
        Column::new("PERMISSIONS").optional(),
        Column::new("LAST SESSION").flexible(),
    ]);
    for agent in &list.agents {
        table.row(row(out, agent, list.chosen.as_deref()));
    }
    table.write(out)
}

fn row(out: &mut Out, agent: &Agent, chosen: Option<&str>) -> Vec<Cell> {
    let destroyed = agent.status == AgentStatus::Destroyed;
    let chosen = !destroyed && chosen == Some(agent.name.as_str());
    let activity = agent.context.as_ref().map(|context| out.clock().ago(context.last_activity_at));
    let last = agent.last_session.as_ref();
    vec![
        if chosen { "*" } else { "" }.into(),
        Cell::new(Style::Strong, safe::one_line(&agent.name)),
        describe::state(agent.state),
        agent.context.as_ref().map_or_else(String::new, |context| context.messages.to_string()).into(),
        activity.unwrap_or_default().into(),
        safe::one_line(agent.model.as_deref().unwrap_or_default()).into(),
        describe::permissions(&agent.permissions).into(),
        last.map_or_else(String::new, |last| {
            match describe::subject(last.description.as_deref(), last.summary.as_deref()) {
                subject if subject.is_empty() => safe::one_line(&last.session_id),
                subject => subject,
            }
        })
        .into(),
    ]
}
