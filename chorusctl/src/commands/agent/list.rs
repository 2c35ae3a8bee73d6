//! `chorusctl agent list`: prints the agents as a table.

use chorus_proto::methods::agent::{List, ListParams, ListResult};
use chorus_proto::{Agent, AgentStatus};

use crate::app::{App, parse_result};
use crate::commands::format;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Stdout, Style, Table, TableArgs, sanitize};

/// List agents
///
/// A `*` marks the default agent, which `agent use` sets. `status` shows the last save of each agent. An agent is `unreachable` if its node of a
/// cluster does not answer, and `unclaimed`, with `-` for its node, if no node has it: the next request for it takes it to one.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Include deleted agents
    #[arg(long)]
    all: bool,
    /// Only the agents of this node of a cluster
    #[arg(long, conflicts_with = "all")]
    node: Option<String>,
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 8] = [
    Column::new("").named("default").whole(),
    Column::new("NAME"),
    Column::new("NODE").optional(),
    Column::new("STATE"),
    Column::new("MESSAGES").align_right(),
    Column::new("ACTIVITY").whole(),
    Column::new("PERMISSIONS").optional(),
    Column::new("MODEL").flexible().optional(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    let raw = app.call_raw::<List>(&ListParams { all: args.all, node: args.node.clone() })?;
    match app.stdout.format() {
        OutputFormat::Json => app.stdout.json_line(&raw),
        OutputFormat::Jsonl => print_pages::print_entries(&mut app.stdout, &raw, "agents"),
        OutputFormat::Text => {
            let list: ListResult = parse_result(&raw)?;
            if !list.agents.is_empty() {
                return write_table(table, &mut app.stdout, &list);
            }
            let (what, hint) = match args.node {
                Some(node) => (
                    format!("no agents on the node {}", sanitize::one_line(&node)),
                    "list the nodes: chorusctl cluster",
                ),
                None => (
                    "no agents yet".to_owned(),
                    "start a conversation: chorusctl chat (or keep those of other tools: chorusctl capture on)",
                ),
            };
            app.stderr.line(&what);
            app.stderr.hint(hint);
            Ok(())
        }
    }
}

fn write_table(mut table: Table, out: &mut Stdout, list: &ListResult) -> Result<(), Error> {
    for agent in &list.agents {
        table.add_row(agent_row(out, agent, list.chosen.as_deref()));
    }
    table.write(out)
}

fn agent_row(out: &mut Stdout, agent: &Agent, chosen: Option<&str>) -> [Cell; 8] {
    let destroyed = agent.status == AgentStatus::Destroyed;
    let chosen = !destroyed && chosen == Some(agent.name.as_str());
    let active_at = agent.context.as_ref().map(|context| context.last_activity_at);
    [
        if chosen { "*" } else { "" }.into(),
        Cell::new(Style::Strong, sanitize::one_line(&agent.name)),
        // In a cluster.
        format::node(agent).into(),
        if agent.import_source.is_some() { "imports".into() } else { format::agent_state_cell(agent) },
        agent.context.as_ref().map_or_else(String::new, |context| context.messages.to_string()).into(),
        active_at.map(|at| Cell::from(out.clock().ago(at)).sorted_by_time(at)).unwrap_or_default(),
        format::permissions(&agent.permissions).into(),
        sanitize::one_line(agent.model.as_deref().unwrap_or_default()).into(),
    ]
}
