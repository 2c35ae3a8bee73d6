//! `/cancel`.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;

use super::command_definition::{AGENT_OPTION, Command, Right, Subcommand, Subcommands};
use super::invocation::Invocation;
use super::response::Response;
use crate::reply;

const DESCRIPTION: &str = "Stop the agent's current turn";

pub(super) const COMMAND: Command = Command {
    name: "cancel",
    description: DESCRIPTION,
    default_permissions: None,
    subcommands: Subcommands::One(Subcommand {
        name: "cancel",
        description: DESCRIPTION,
        run: |call| Box::pin(cancel(call)),
        // Everybody may stop their own turn; for others' turns the right is checked with the turn.
        right: Right::Read,
        private: false,
        options: &[AGENT_OPTION],
    }),
};

async fn cancel(call: &Invocation) -> Result<Response> {
    let (by, ops) = (&call.caller, call.caller.ops());
    let agent = by.resolve_agent(call.args.text("agent"))?;
    let key = by.find_conversation(&agent)?;
    let Some(running) = ops.registry.running.status(key, ops.clock.ticks()) else {
        return Err(Error::new(ErrorKind::NotFound, "Nothing to cancel: the agent is not working"));
    };
    let (who, any) = (&by.member.requester, by.member.rights.can_change_context());
    let stopped = reply::stop_running_turn(ops, &by.app.running_turns, (&agent, key), running.turn_id, who, any).await;
    stopped.map_err(|failure| by.verify_denial(failure))?;
    Ok(Response::new("Stopped the current turn."))
}
