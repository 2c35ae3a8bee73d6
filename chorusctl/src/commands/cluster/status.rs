//! `chorusctl cluster status`: lists the nodes of the cluster.

use chorus_proto::methods::cluster::{Node, NodeState, Status, StatusParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::group_digits;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};

/// List the nodes (default)
///
/// A `*` marks the node that answers. LOAD is the load average of its machine over a minute, in percent of its processors; LAG is the time
/// until the database answered its heartbeat. BEAT is the time since the last heartbeat of a node, which sends one each 2 seconds. After 8
/// seconds without one, or 6 if it cannot be connected to either, other nodes take its agents over. A node is `unreachable` if the one that answers
/// cannot connect to it: agents that it has cannot be used through that node, which gives it none either.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 10] = [
    Column::new("").named("answers").whole(),
    Column::new("NODE"),
    Column::new("STATE"),
    Column::new("AGENTS").align_right(),
    Column::new("LIVE").align_right().optional(),
    Column::new("LOAD").align_right(),
    Column::new("LAG").align_right(),
    Column::new("BEAT").align_right(),
    Column::new("VERSION").optional(),
    Column::new("ADDRESS").flexible().optional(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let mut table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    app.call_and_print::<Status>(&StatusParams {}, |app, status| {
        for node in &status.nodes {
            table.add_row(node_row(node, node.name == status.node));
        }
        table.write(&mut app.stdout)?;
        for node in status.nodes.iter().filter(|node| node.reachable == Some(false)) {
            print_problem(app, &status.node, node)?;
        }
        Ok(())
    })
}

/// Says why a node cannot be reached, and what to do.
fn print_problem(app: &mut App, from: &str, node: &Node) -> Result<(), Error> {
    let (name, from) = (sanitize::one_line(&node.name), sanitize::one_line(from));
    let problem = sanitize::one_line(node.problem.as_deref().unwrap_or("unknown reason"));
    writeln!(app.stdout, "{name} is unreachable from {from}: {problem}")?;
    app.stdout.flush()?;
    if let Some(hint) = &node.hint {
        app.stderr.hint(&sanitize::one_line(hint));
    }
    Ok(())
}

fn node_row(node: &Node, answers: bool) -> [Cell; 10] {
    let state = match node.state {
        NodeState::Running if node.reachable == Some(false) => Cell::new(Style::Bad, "unreachable"),
        NodeState::Draining if node.reachable == Some(false) => Cell::new(Style::Bad, "draining, unreachable"),
        NodeState::Running => Cell::from("running"),
        NodeState::Draining => Cell::new(Style::Faint, "draining"),
        NodeState::Silent => Cell::new(Style::Bad, "silent"),
        NodeState::Stopped => Cell::from("stopped"),
    };
    let is_up = matches!(node.state, NodeState::Running | NodeState::Draining);
    let while_up = |value: Option<u64>, unit: &str| {
        value.filter(|_| is_up).map_or_else(String::new, |value| format!("{} {unit}", group_digits(value)))
    };
    [
        if answers { "*" } else { "" }.into(),
        Cell::new(Style::Strong, sanitize::one_line(&node.name)),
        state,
        group_digits(node.agents).into(),
        group_digits(node.contexts).into(),
        while_up(node.load_percent, "%").into(),
        while_up(node.lag_ms, "ms").into(),
        if node.state == NodeState::Stopped { String::new() } else { beat(node.heartbeat_ms) }.into(),
        sanitize::one_line(&node.version).into(),
        sanitize::one_line(&node.address).into(),
    ]
}

/// Formats the time since a heartbeat, such as `1.4 s`.
fn beat(ms: u64) -> String {
    format!("{}.{} s", group_digits(ms / 1_000), ms % 1_000 / 100)
}
