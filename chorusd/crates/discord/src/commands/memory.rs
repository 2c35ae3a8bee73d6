//! `/memory`: what the agent of the channel always remembers.

use chorus_base::error::Result;
use chorus_engine::ops::memory::{add, list, remove};
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::methods::memory::{AddParams, ListParams, MemoryEntry, RemoveParams};
use chorus_proto::pluralize::pluralize;

use super::command_definition::{
    AGENT_OPTION, Command, OptionKind, Right, Subcommand, Subcommands, optional, required,
};
use super::context::audited_agent;
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::{inline_code, inline_text, relative_time};

pub(super) const COMMAND: Command = Command {
    name: "memory",
    description: "Show or change what the agent always remembers",
    default_permissions: None,
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "list",
            description: "List what the agent remembers in every conversation",
            run: |call| Box::pin(list(call)),
            right: Right::Read,
            private: true,
            options: &[optional("page", "Page number", OptionKind::Number(1)), AGENT_OPTION],
        },
        Subcommand {
            name: "add",
            description: "Add something that the agent remembers in every conversation",
            run: |call| Box::pin(add(call)),
            right: Right::Change,
            private: false,
            options: &[required("text", "One or two sentences", OptionKind::Text(2000)), AGENT_OPTION],
        },
        Subcommand {
            name: "remove",
            description: "Remove something that the agent remembers",
            run: |call| Box::pin(remove(call)),
            right: Right::Change,
            private: false,
            options: &[required("id", "ID in /memory list", OptionKind::Text(64)), AGENT_OPTION],
        },
    ]),
};

/// The hint if the model does not see all facts.
const REMOVE_HINT: &str = "To make room, remove some that are no longer needed: `/memory remove`";

/// Entries on a page.
const PAGE_SIZE: u64 = 20;

async fn list(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let page = call.args.number("page").unwrap_or(1).max(1);
    let params = ListParams {
        agent: Some(agent.settings.name.clone()),
        offset: Some((page - 1).saturating_mul(PAGE_SIZE)),
        limit: Some(PAGE_SIZE),
    };
    let (ops, catalog) = (call.caller.ops(), &call.caller.ops().store.catalog);
    let found = list::list(&ops.agent_resolver, &catalog.memories, &catalog.sessions, params);
    let found = with_expected_agent(agent.settings.id, found).await?;
    let name = inline_text(call, &agent.settings.name, 64);
    if found.total == 0 {
        return Ok(Response::new(format!("**{name}** remembers nothing yet. Add something with `/memory add`.")));
    }
    let pages = found.total.div_ceil(PAGE_SIZE);
    let mut lines = vec![format!("**{name}** remembers {} · page {page} of {pages}", pluralize(found.total, "fact"))];
    lines.extend(found.entries.iter().map(|entry| entry_line(call, entry)));
    if found.shown < found.total {
        lines.push(format!(
            "Note: the model sees {} of {}, because they may use {} tokens. {REMOVE_HINT}",
            found.shown,
            pluralize(found.total, "fact"),
            found.token_budget
        ));
    }
    Ok(Response::new(lines.join("\n")))
}

fn entry_line(call: &Invocation, entry: &MemoryEntry) -> String {
    let hidden = if entry.shown { "" } else { " · not shown to the model" };
    format!(
        "{} · {}{hidden} · {}",
        inline_code(call, &entry.short_id, 40),
        relative_time(entry.created_at),
        inline_text(call, &entry.text, 300)
    )
}

async fn add(call: &Invocation) -> Result<Response> {
    let text = call.args.require_text("text")?.to_owned();
    let agent = audited_agent(call, "memory.add").await?;
    let params = AddParams { agent: Some(agent.settings.name.clone()), text, redact: true, ..AddParams::default() };
    let ops = call.caller.ops();
    let by = &call.caller.member.requester;
    let added = add::add_as(&ops.agent_resolver, &ops.store.catalog, &ops.redactor, &ops.clock, params, by);
    let added = with_expected_agent(agent.settings.id, added).await?;
    let what = if added.added { "Added" } else { "Already there" };
    let mut text = format!("{what}: {}", entry_line(call, &added.entry));
    if !added.entry.shown {
        text.push_str(&format!("\nNote: the memory is full, so the model does not see this fact. {REMOVE_HINT}"));
    }
    if added.secrets_found > 0 {
        text.push_str(&format!("\nNote: {} removed from it.", secrets_text(added.secrets_found)));
    }
    Ok(Response::new(text))
}

fn secrets_text(found: u64) -> String {
    if found == 1 { "1 secret was".to_owned() } else { format!("{found} secrets were") }
}

async fn remove(call: &Invocation) -> Result<Response> {
    let id = call.args.require_text("id")?.trim().to_owned();
    let agent = audited_agent(call, "memory.remove").await?;
    let params = RemoveParams { agent: Some(agent.settings.name.clone()), id };
    let ops = call.caller.ops();
    let removed = remove::remove(&ops.agent_resolver, &ops.store.catalog, &ops.clock, params);
    let removed = with_expected_agent(agent.settings.id, removed).await?;
    Ok(Response::new(format!("Moved to the trash: {}", entry_line(call, &removed.entry))))
}
