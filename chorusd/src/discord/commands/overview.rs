//! `/status`, `/models`, `/approvals`, `/usage`, `/ping`: how things stand.

use std::time::Duration;

use chorus_proto::Agent;
use chorus_proto::methods::approvals::ListParams;
use chorus_proto::methods::daemon::StatusParams;
use chorus_proto::methods::models::{Discovery, ModelsParams};
use chorus_proto::methods::usage::{UsageParams, UsageSums};

use super::agent::line;
use super::call::Call;
use super::reply::{Button, MOST, Reply, Style};
use super::words::{Clean as _, ago, block, code, count, cut, plain};
use crate::discord::approvals::{answers, person, sheet};
use crate::failure::Result;
use crate::ops::select::meaning;
use crate::ops::{approvals, models, status, usage};

/// Models of a provider that are listed by name.
const MODELS: usize = 40;

/// Characters of an action that are listed; one that is longer is answered where it stands whole.
const SHEET: usize = 600;

/// Questions that have buttons: Discord takes no more rows.
const ROWS: usize = 5;

/// Days that are listed.
const DAYS: usize = 31;

pub async fn status(call: &Call) -> Result<Reply> {
    let by = &call.by;
    let named = call.given.text("agent");
    let agent = match (named, by.own()) {
        (None, None) => None,
        (named, _) => Some(by.agent(named)?),
    };
    let name = agent.as_ref().map(|agent| agent.facts.name.clone());
    let found = {
        let work = status::status(by.ops(), StatusParams { agent: name.clone(), limit: Some(0) });
        match &agent {
            Some(agent) => meaning(agent.facts.id, work).await?,
            None => work.await?,
        }
    };
    let up = humantime::format_duration(Duration::from_secs(found.daemon.uptime_s / 60 * 60)).to_string();
    let up = if found.daemon.uptime_s < 60 { "under a minute".to_owned() } else { up };
    let mut lines = vec![format!("Chorus {} · up {up}", found.daemon.version)];
    match (found.agents.first(), name) {
        (Some(agent), Some(_)) => {
            lines.push(line(by, agent));
            lines.extend(details(agent));
            lines.push(format!("tasks: {} running, {} ended", found.tasks.running, found.tasks.finished));
        }
        _ => lines.push(format!("{} here", count(by.visible().len() as u64, "agent"))),
    }
    Ok(Reply::new(lines.join("\n")))
}

fn details(agent: &Agent) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(context) = &agent.context {
        let unsaved = if context.unsaved == 0 { "all saved".into() } else { format!("{} not saved", context.unsaved) };
        let window = context.meter.map_or_else(String::new, |meter| match meter.window {
            Some(window) => format!(" · {} of {window} tokens", meter.used),
            None => format!(" · {} tokens", meter.used),
        });
        lines.push(format!("began {} · {unsaved}{window}", ago(context.started_at)));
        lines.extend(context.idle_deadline_at.map(|at| format!("put away {} unless something is said", ago(at))));
    }
    if let Some(today) = &agent.today {
        let cost = today.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
        lines.push(format!("today: {} · {} tokens{cost}", count(today.calls, "call"), today.tokens));
    }
    if agent.approvals > 0 {
        lines.push(format!("{} waiting for an answer", count(agent.approvals, "approval")));
    }
    lines
}

pub async fn models(call: &Call) -> Result<Reply> {
    let found = models::list::list(call.by.ops(), ModelsParams {}).await?;
    let default = found.default_model.map_or_else(|| "none".to_owned(), |model| code(call, &model, 120));
    let mut lines = vec![format!("default: {default}")];
    lines.extend(
        found.aliases.iter().map(|(name, model)| format!("{} is {}", code(call, name, 64), code(call, model, 120))),
    );
    for provider in &found.providers {
        let amiss = match provider.found {
            Discovery::Ok => "",
            Discovery::Failed => " (cannot be asked)",
            Discovery::NotRun => " (not asked yet)",
        };
        lines.push(format!(
            "**{}**{amiss}: {}",
            plain(call, &provider.name, 64),
            count(provider.models.len() as u64, "model")
        ));
        lines.extend(provider.models.iter().take(MODELS).map(|model| format!("- {}", code(call, &model.name, 120))));
        if provider.models.len() > MODELS {
            lines.push(format!("- and {} more", provider.models.len() - MODELS));
        }
    }
    Ok(Reply::new(lines.join("\n")))
}

pub async fn approvals(call: &Call) -> Result<Reply> {
    let agent = call.by.agent(call.given.text("agent"))?;
    let params = ListParams { agent: Some(agent.facts.name.clone()), ..ListParams::default() };
    let found = meaning(agent.facts.id, approvals::list::list(call.by.ops(), params)).await?;
    if found.approvals.is_empty() {
        return Ok(Reply::new("Nothing waits for an answer."));
    }
    let (by, alone) = (&call.by, found.approvals.len() == 1);
    let mut rows = Vec::new();
    let mut asked = Vec::new();
    for approval in &found.approvals {
        let (id, until) = (code(call, &approval.id, 16), ago(approval.expires_at));
        let sheet = call.clean(&sheet(approval));
        let whole = sheet.chars().count() <= SHEET;
        asked.push(format!(
            "{id} · asked for {} · expires {until}\n{}",
            person(&approval.requester),
            block(call, &cut(&sheet, SHEET))
        ));
        if rows.len() < ROWS {
            let buttons = answers(approval, &by.person.requester, by.person.rights.approver, whole);
            let button = |(id, label): (String, &str)| Button {
                id,
                label: if alone { label.to_owned() } else { format!("{label} · {}", approval.id) },
                style: Style::Plain,
                disabled: false,
            };
            rows.push(buttons.into_iter().map(button).collect());
        }
    }
    let text = asked.join("\n");
    // What is in a file only is not there to be seen with the buttons.
    if text.chars().count() > MOST {
        rows.clear();
    }
    Ok(Reply { rows, ..Reply::new(text) })
}

pub async fn usage(call: &Call) -> Result<Reply> {
    let agent = call.by.agent(call.given.text("agent"))?;
    let since = call.given.text("since").map(str::to_owned);
    let name = agent.facts.name.clone();
    let found =
        meaning(agent.facts.id, usage::usage(call.by.ops(), UsageParams { agent: Some(name.clone()), since })).await?;
    let name = plain(call, &name, 64);
    if found.days.is_empty() {
        return Ok(Reply::new(format!("**{name}** has called no model.")));
    }
    let row = |what: &str, sums: &UsageSums| {
        let cost = sums.cost_usd.map_or_else(|| "price not known".to_owned(), |cost| format!("${cost:.4}"));
        let calls = count(sums.calls, "call");
        format!("{what}: {calls}, {} in, {} out, {cost}", sums.input_tokens, sums.output_tokens)
    };
    let days = found.days.iter().take(DAYS).map(|day| row(&format!("{} {}", day.day, day.model), &day.sums));
    let mut lines: Vec<String> = days.collect();
    lines.push(row("total", &found.total));
    Ok(Reply::new(format!("**{name}**\n{}", block(call, &lines.join("\n")))))
}

pub async fn ping(_: &Call) -> Result<Reply> {
    Ok(Reply::new(format!("Chorus {} is there.", status::VERSION)))
}
