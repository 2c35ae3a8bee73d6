//! Short commands for what people do most with a conversation: `/undo` and `/pin`.

use chorus_base::error::Result;
use chorus_engine::ops::context::pin;
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::methods::context::PinParams;

use super::command_definition::{
    AGENT_OPTION, Command, CommandOption, Handler, OptionKind, Right, Subcommand, Subcommands, required,
};
use super::context::{audited_agent, rewind};
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::pluralize;

pub(super) const UNDO: Command =
    shortcut("undo", "Undo the last turn of the conversation", &[AGENT_OPTION], |call| Box::pin(rewind(call)));

pub(super) const PIN: Command = shortcut(
    "pin",
    "Pin a fact: the agent keeps it in mind for the whole conversation",
    &[required("text", "The fact to pin", OptionKind::Text(2000)), AGENT_OPTION],
    |call| Box::pin(pin(call)),
);

/// Defines a command that changes the conversation.
const fn shortcut(
    name: &'static str,
    description: &'static str,
    options: &'static [CommandOption],
    run: Handler,
) -> Command {
    let action = Subcommand { name, description, run, right: Right::Change, private: false, options };
    Command { name, description, default_permissions: None, subcommands: Subcommands::One(action) }
}

async fn pin(call: &Invocation) -> Result<Response> {
    let fact = call.args.require_text("text")?.to_owned();
    let agent = audited_agent(call, "context.pin").await?;
    let params = PinParams { agent: Some(agent.settings.name.clone()), fact };
    let ops = call.caller.ops();
    let pinned = pin::pin(&ops.agent_resolver, &ops.registry, params);
    let pinned = with_expected_agent(agent.settings.id, pinned).await?;
    let facts = pluralize(pinned.pinned_facts.len() as u64, "pinned fact");
    Ok(Response::new(format!("Pinned. The conversation now has {facts}.")))
}
