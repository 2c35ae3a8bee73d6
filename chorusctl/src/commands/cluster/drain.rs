//! `chorusctl cluster drain`: moves the agents of a node to other nodes.

use chorus_proto::methods::cluster::{Drain, DrainParams, UnreachableNode};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::units::pluralize;

/// Move all agents of a node to others
///
/// Running turns may end first, for as long as `stop_timeout` allows; then they are cancelled. The node takes no agents until it restarts, or
/// until --undo, and still answers for those of other nodes. Agents that have moved stay at their new node. A node
/// that it cannot connect to gets none.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the node [default: the one that answers]
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// Let the node take agents again
    #[arg(long)]
    undo: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let Args { node, undo } = args;
    app.call_and_print::<Drain>(&DrainParams { node, undo }, |app, result| {
        let node = sanitize::one_line(&result.node);
        if !result.draining {
            return app.stdout.status_line(&format!("{node} takes agents again"));
        }
        let moved = pluralize(result.moved, "agent");
        app.stdout.status_line(&format!("{node} takes no more agents; moved {moved}"))?;
        for left in &result.left {
            let (agent, reason) = (sanitize::one_line(&left.agent), sanitize::one_line(&left.reason));
            app.stderr.warning(&format!("{agent} is still on {node}: {reason}"));
        }
        if !result.left.is_empty() {
            app.stderr.hint("try again: chorusctl cluster drain");
        }
        for UnreachableNode { node: other, problem, hint } in &result.unreachable {
            let (other, problem) = (sanitize::one_line(other), sanitize::one_line(problem));
            app.stderr.warning(&format!("{other} got no agents, because {node} does not reach it: {problem}"));
            if let Some(hint) = hint {
                app.stderr.hint(&sanitize::one_line(hint));
            }
        }
        if !result.files_left.is_empty() {
            let names: Vec<_> = result.files_left.iter().map(|agent| sanitize::one_line(agent)).collect();
            app.stderr
                .warning(&format!("the files in the workspaces of these agents stay on {node}: {}", names.join(", ")));
            app.stderr.hint("so that files move along: chorusctl agent config NAME checkpoint_workspace true");
        }
        Ok(())
    })
}
