//! The commands that show a state: `/status`, `/models`, `/approvals`, `/usage`, `/ping`.

use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::conversations::{ConversationKey, SessionScope};
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_engine::ops::{approvals, daemon, models, usage};
use chorus_proto::methods::approvals::ListParams;
use chorus_proto::methods::daemon::StatusParams;
use chorus_proto::methods::models::{Discovery, ModelsParams};
use chorus_proto::methods::usage::{UsageParams, UsageSums};
use chorus_proto::pluralize::pluralize;
use chorus_proto::{Agent, Meter, TokenSource, ToolsShown};

use super::agent::agent_line;
use super::command_definition::{AGENT_OPTION, Command, OptionKind, optional, read_only_command};
use super::invocation::Invocation;
use super::response::{Button, MAX_MESSAGE_CHARS, Response, Style};
use super::text_format::{Redact as _, code_block, inline_code, inline_text, relative_time, truncate};
use crate::approvals::{allowed_buttons, detailed_text, format_requester};
use crate::conversations;

pub(super) const STATUS: Command =
    read_only_command("status", "Show the status of Chorus and the agent", &[AGENT_OPTION], |call| {
        Box::pin(status(call))
    });
pub(super) const MODELS: Command = read_only_command("models", "List models", &[], |call| Box::pin(models(call)));
pub(super) const APPROVALS: Command =
    read_only_command("approvals", "List pending approvals", &[AGENT_OPTION], |call| Box::pin(approvals(call)));
pub(super) const USAGE: Command = read_only_command(
    "usage",
    "Show the agent's token usage and cost",
    &[optional("since", "7d, 12h, or a date such as 2026-02-12", OptionKind::Text(32)), AGENT_OPTION],
    |call| Box::pin(usage(call)),
);
pub(super) const PING: Command =
    read_only_command("ping", "Check that Chorus is online", &[], |call| Box::pin(ping(call)));

/// Models of a provider that are listed by name.
const MAX_MODELS_PER_PROVIDER: usize = 40;

/// Characters of an action that are listed; a longer action can only be allowed where it is shown whole.
const MAX_ACTION_CHARS: usize = 600;

/// Approvals that get buttons: Discord takes no more rows.
const MAX_BUTTON_ROWS: usize = 5;

/// Limits of Discord on the buttons of a row, and on the characters of a label.
const MAX_BUTTONS_PER_ROW: usize = 5;
const MAX_LABEL_CHARS: usize = 80;

/// Days that are listed.
const MAX_DAYS: usize = 31;

async fn status(call: &Invocation) -> Result<Response> {
    let by = &call.caller;
    let named = call.args.text("agent");
    let agent = match (named, by.channel_agent()) {
        (None, None) => None,
        (named, _) => Some(by.resolve_agent(named)?),
    };
    let name = agent.as_ref().map(|agent| agent.settings.name.clone());
    let found = {
        let work = daemon::status(by.ops(), StatusParams { agent: name.clone(), limit: Some(0) });
        match &agent {
            Some(agent) => with_expected_agent(agent.settings.id, work).await?,
            None => work.await?,
        }
    };
    let up = humantime::format_duration(Duration::from_secs(found.daemon.uptime_s / 60 * 60)).to_string();
    let up = if found.daemon.uptime_s < 60 { "under a minute".to_owned() } else { up };
    let mut lines = vec![format!("Chorus {} · up {up}", found.daemon.version)];
    match (found.agents.first().map(|found| in_conversation(call, found)).as_ref(), name) {
        (Some(agent), Some(_)) => {
            lines.push(agent_line(by, agent));
            lines.extend(agent_details(agent));
            lines.push(format!("tasks: {} running, {} finished", found.tasks.running, found.tasks.finished));
        }
        _ => lines.push(format!("{} here", pluralize(by.visible_agents().len() as u64, "agent"))),
    }
    Ok(Response::new(lines.join("\n")))
}

/// Returns the agent with the context of the conversation in which the command was used.
fn in_conversation(call: &Invocation, agent: &Agent) -> Agent {
    let by = &call.caller;
    let key = conversations::find_conversation(by.ops(), &by.app.channels, agent.id, by.channel);
    if key.is_some_and(ConversationKey::is_main) {
        return agent.clone();
    }
    let own = agent.conversations.iter().find(|conversation| Some(conversation.id) == key.map(|key| key.id));
    let context = own.and_then(|own| own.context.clone());
    Agent { context, turn: own.and_then(|own| own.turn), ..agent.clone() }
}

fn agent_details(agent: &Agent) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(context) = &agent.context {
        let unsaved =
            if context.unsaved == 0 { "no unsaved messages".into() } else { format!("{} unsaved", context.unsaved) };
        let window = context.meter.map_or_else(String::new, |meter| format!(" · {}", meter_text(&meter)));
        lines.push(format!("started {} · {unsaved}{window}", relative_time(context.started_at)));
        lines.extend(
            context
                .idle_deadline_at
                .map(|at| format!("saved and cleared {} unless there is a new message", relative_time(at))),
        );
    }
    if let Some(today) = &agent.today {
        let cost = today.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
        lines.push(format!("today: {} · {} tokens{cost}", pluralize(today.calls, "call"), today.tokens));
    }
    if agent.approvals > 0 {
        lines.push(pluralize(agent.approvals, "pending approval"));
    }
    lines
}

/// Says how large the next request to the model is, and how its tokens were counted.
fn meter_text(meter: &Meter) -> String {
    let source = match meter.source {
        Some(TokenSource::Exact) => " (exact)",
        Some(TokenSource::Provider) => " (counted by the provider)",
        Some(TokenSource::Estimated) => " (estimated)",
        None => "",
    };
    let tools = match meter.tools {
        Some(ToolsShown::Few) => ", few tools",
        Some(ToolsShown::None) => ", no tools",
        None => "",
    };
    match meter.window {
        Some(window) => format!("{} of {window} tokens{source}{tools}", meter.used),
        None => format!("{} tokens{source}", meter.used),
    }
}

async fn models(call: &Invocation) -> Result<Response> {
    let ops = call.caller.ops();
    let found = models::list::list(&ops.models, &ops.effective_config, ModelsParams {}).await?;
    let default = found.default_model.map_or_else(|| "none".to_owned(), |model| inline_code(call, &model, 120));
    let mut lines = vec![format!("default: {default}")];
    lines.extend(
        found
            .aliases
            .iter()
            .map(|(name, model)| format!("{}: {}", inline_code(call, name, 64), inline_code(call, model, 120))),
    );
    for provider in &found.providers {
        let amiss = match provider.found {
            Discovery::Ok => "",
            Discovery::Failed => " (unreachable)",
            Discovery::NotRun => " (not checked yet)",
        };
        lines.push(format!(
            "**{}**{amiss}: {}",
            inline_text(call, &provider.name, 64),
            pluralize(provider.models.len() as u64, "model")
        ));
        lines.extend(
            provider
                .models
                .iter()
                .take(MAX_MODELS_PER_PROVIDER)
                .map(|model| format!("- {}", inline_code(call, &model.name, 120))),
        );
        if provider.models.len() > MAX_MODELS_PER_PROVIDER {
            lines.push(format!("- and {} more", provider.models.len() - MAX_MODELS_PER_PROVIDER));
        }
    }
    Ok(Response::new(lines.join("\n")))
}

/// Returns whether something of a conversation may be shown where the command was used: what belongs to private
/// conversations is shown there only.
fn is_offered(call: &Invocation, agent: &AgentEntry, conversation: Option<&str>) -> bool {
    let (id, index) = (agent.settings.id, &call.caller.ops().agents.conversations);
    let of = match conversation {
        None => ConversationKey::main(id),
        Some(name) => match index.by_name(id, name) {
            Some(row) => row.key,
            None => return false,
        },
    };
    call.caller.session_viewer(agent).is_ok_and(|viewer| SessionScope::of(index, viewer).contains(of))
}

async fn approvals(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let params = ListParams { agent: Some(agent.settings.name.clone()), ..ListParams::default() };
    let ops = call.caller.ops();
    let listed =
        approvals::list::list(&ops.agent_resolver, &ops.approvals, &ops.store.catalog.approvals, &ops.config, params);
    let mut found = with_expected_agent(agent.settings.id, listed).await?;
    found.approvals.retain(|approval| is_offered(call, &agent, approval.conversation.as_deref()));
    if found.approvals.is_empty() {
        return Ok(Response::new("No pending approvals."));
    }
    let (by, alone) = (&call.caller, found.approvals.len() == 1);
    let mut rows = Vec::new();
    let mut asked = Vec::new();
    for approval in &found.approvals {
        let (id, until) = (inline_code(call, &approval.id, 16), relative_time(approval.expires_at));
        let sheet = call.redact(&detailed_text(approval));
        let whole = sheet.chars().count() <= MAX_ACTION_CHARS;
        asked.push(format!(
            "{id} · requested by {} · expires {until}\n{}",
            format_requester(&approval.requester),
            code_block(call, &truncate(&sheet, MAX_ACTION_CHARS))
        ));
        if rows.len() < MAX_BUTTON_ROWS {
            let buttons = allowed_buttons(approval, &by.member.requester, by.member.rights.approver, whole);
            let button = |(id, label): (String, String)| Button {
                id,
                label: if alone { label } else { truncate(&format!("{} · {label}", approval.id), MAX_LABEL_CHARS) },
                style: Style::Secondary,
                disabled: false,
            };
            // Of several approvals each has one row.
            let room = if alone { usize::MAX } else { MAX_BUTTONS_PER_ROW };
            let buttons: Vec<Button> = buttons.into_iter().take(room).map(button).collect();
            rows.extend(buttons.chunks(MAX_BUTTONS_PER_ROW).map(<[Button]>::to_vec));
        }
    }
    let text = asked.join("\n");
    // The buttons must not stand below an action that can be read only in the attached file.
    if text.chars().count() > MAX_MESSAGE_CHARS {
        rows.clear();
    }
    Ok(Response { rows, ..Response::new(text) })
}

async fn usage(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let since = call.args.text("since").map(str::to_owned);
    let (name, ops) = (agent.settings.name.clone(), call.caller.ops());
    let params = UsageParams { agent: Some(name.clone()), since, by: None };
    let sums = usage::usage(&ops.agents, &ops.store.catalog, &ops.usage, &ops.models, &ops.clock, params);
    let found = with_expected_agent(agent.settings.id, sums).await?;
    let name = inline_text(call, &name, 64);
    if found.days.is_empty() {
        return Ok(Response::new(format!("**{name}** has not used a model yet.")));
    }
    let row = |what: &str, sums: &UsageSums| {
        let cost = sums.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.4}"));
        let calls = pluralize(sums.calls, "call");
        format!("{what}: {calls}, {} in, {} out, {cost}", sums.input_tokens, sums.output_tokens)
    };
    let days = found.days.iter().take(MAX_DAYS).map(|day| row(&format!("{} {}", day.day, day.model), &day.sums));
    let mut lines: Vec<String> = days.collect();
    lines.push(row("total", &found.total));
    let mut text = format!("**{name}**\n{}", code_block(call, &lines.join("\n")));
    let calls = |count| pluralize(count, "call");
    match found.total.estimated_calls {
        0 => text.push_str("\nThe provider counted all tokens."),
        estimated => text.push_str(&format!(
            "\nThe tokens of {} are estimated, because the provider did not report them; it counted all others.",
            calls(estimated)
        )),
    }
    if found.total.unpriced_calls > 0 {
        text.push_str(&format!("\n{} without a known price, not in the cost.", calls(found.total.unpriced_calls)));
    }
    Ok(Response::new(text))
}

async fn ping(_: &Invocation) -> Result<Response> {
    Ok(Response::new(format!("Chorus {} is online.", daemon::VERSION)))
}
