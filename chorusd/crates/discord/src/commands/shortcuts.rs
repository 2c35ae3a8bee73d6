//! Short commands for what people do most with a conversation: `/undo`, `/pin` and `/unpin`.

use chorus_base::error::Result;
use chorus_engine::ops::context::{pin, show, unpin};
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::Item;
use chorus_proto::methods::context::{PinParams, PinResult, ShowParams, UnpinParams};
use chorus_proto::pluralize::pluralize;

use super::command_definition::{
    AGENT_OPTION, Command, CommandOption, Handler, OptionKind, Right, Subcommand, Subcommands, optional, required,
};
use super::context::{audited_agent, rewind};
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::{inline_text, warning_lines};

pub(super) const UNDO: Command =
    shortcut("undo", "Undo the last turn of the conversation", &[AGENT_OPTION], |call| Box::pin(rewind(call)));

pub(super) const PIN: Command = shortcut(
    "pin",
    "Pin a fact: the agent keeps it in mind for the whole conversation",
    &[required("text", "The fact to pin", OptionKind::Text(2000)), AGENT_OPTION],
    |call| Box::pin(pin(call)),
);

pub(super) const UNPIN: Command = shortcut(
    "unpin",
    "Remove a pinned fact, or list the pinned facts",
    &[
        optional("number", "Number of the fact; without it, the pinned facts are listed", OptionKind::Number(1)),
        AGENT_OPTION,
    ],
    |call| Box::pin(unpin(call)),
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
    let params = PinParams {
        conversation: call.caller.conversation(&agent).await?,
        agent: Some(agent.settings.name.clone()),
        fact,
    };
    let ops = call.caller.ops();
    let pinned = pin::pin(&ops.agent_resolver, &ops.registry, params);
    let pinned = with_expected_agent(agent.settings.id, pinned).await?;
    Ok(Response::new(format!("Pinned. {}", count_text(call, &pinned))))
}

async fn unpin(call: &Invocation) -> Result<Response> {
    let ops = call.caller.ops();
    let Some(number) = call.args.number("number") else {
        let agent = call.caller.resolve_agent(call.args.text("agent"))?;
        let params = ShowParams {
            agent: Some(agent.settings.name.clone()),
            conversation: call.caller.conversation(&agent).await?,
            last: Some(0),
            ..ShowParams::default()
        };
        let shown = show::show(&ops.agent_resolver, &ops.registry, &ops.context_meter, &ops.config, params);
        let facts = with_expected_agent(agent.settings.id, shown).await?.working_set.pinned_facts;
        return Ok(Response::new(facts_text(call, &facts)));
    };
    let agent = audited_agent(call, "context.unpin").await?;
    let params = UnpinParams {
        conversation: call.caller.conversation(&agent).await?,
        agent: Some(agent.settings.name.clone()),
        n: number,
    };
    let removed = unpin::unpin(&ops.agent_resolver, &ops.registry, params);
    let removed = with_expected_agent(agent.settings.id, removed).await?;
    Ok(Response::new(format!("Removed the pinned fact {number}. {}", count_text(call, &removed))))
}

/// Says how many facts are pinned, and what a person should know about them.
fn count_text(call: &Invocation, pinned: &PinResult) -> String {
    let facts = pluralize(pinned.pinned_facts.len() as u64, "pinned fact");
    format!("The conversation now has {facts}.{}", warning_lines(call, &pinned.warnings))
}

/// Lists pinned facts with their numbers.
fn facts_text(call: &Invocation, facts: &[Item]) -> String {
    if facts.is_empty() {
        return "No pinned facts. Pin one with `/pin`.".to_owned();
    }
    let line = |(number, fact): (usize, &Item)| format!("{number}\\. {}", inline_text(call, &fact.text, 300));
    let lines: Vec<String> = (1..).zip(facts).map(line).collect();
    format!("{}\nTo remove one, use `/unpin` with its number.", lines.join("\n"))
}
