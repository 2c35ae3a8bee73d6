//! `chorusctl cluster forget`: removes a node that does not come back.

use chorus_proto::methods::cluster::{Forget, ForgetParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::units::pluralize;

/// Remove a node that does not come back from the list
///
/// The node must have stopped, or be silent in `chorusctl cluster`. Its events are deleted. Agents that it had are taken on by other nodes as they are
/// asked for. Sessions, the audit log, usage, its settings and what it has captured stay: if it starts again, it is listed again and has them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the node
    #[arg(value_name = "NODE")]
    node: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Forget>(&ForgetParams { node: args.node }, |app, result| {
        let node = sanitize::one_line(&result.node);
        let freed = match result.agents {
            0 => String::new(),
            agents => {
                format!("; it had {}, which other nodes take on when they are needed", pluralize(agents, "agent"))
            }
        };
        app.stdout.status_line(&format!("forgot {node}{freed}"))
    })
}
