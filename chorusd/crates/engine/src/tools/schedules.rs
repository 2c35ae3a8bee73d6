//! The tools `schedule_add`, `schedule_list` and `schedule_remove`: messages that the agent gets at certain times.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::host::{ScheduleRequest, ToolCaller};
use super::tool::{Tool, ToolOutcome};
use super::{ToolContext, error_outcome};

pub(super) struct ScheduleAdd;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddParams {
    name: String,
    message: String,
    /// Five fields: `0 7 * * mon-fri`.
    #[serde(default)]
    cron: Option<String>,
    /// Interval: `4h`.
    #[serde(default)]
    every: Option<String>,
    /// Once, after this time: `20m`.
    #[serde(default)]
    after: Option<String>,
    /// Of `cron`: `Europe/Berlin`.
    #[serde(default)]
    time_zone: Option<String>,
}

impl AddParams {
    /// Returns the argument of the action, which includes all that the approval prompt has to show.
    fn argument(&self) -> String {
        let parts = [("cron", &self.cron), ("every", &self.every), ("after", &self.after), ("in", &self.time_zone)];
        let when = parts.iter().filter_map(|(word, part)| part.as_ref().map(|part| format!("{word} {part} ")));
        format!("{} {}{}", self.name, when.collect::<String>(), self.message)
    }
}

impl Tool for ScheduleAdd {
    const NAME: &'static str = "schedule_add";
    const DESCRIPTION: &'static str =
        "Sends you a message later or regularly, in a separate conversation. Set one of `cron`, `every`, `after`.";
    const ASKS_IF_UNATTENDED: bool = true;
    type Params = AddParams;

    fn action(params: &AddParams, _: &ToolContext) -> Result<String, String> {
        let set = [&params.cron, &params.every, &params.after].iter().filter(|part| part.is_some()).count();
        if set != 1 {
            return Err("set exactly one of `cron`, `every` and `after`".into());
        }
        for text in [&params.every, &params.after].into_iter().flatten() {
            parse_seconds(text)?;
        }
        Ok(Action::Other { tool: Self::NAME, argument: &params.argument() }.to_string())
    }

    async fn run(params: AddParams, ctx: Arc<ToolContext>) -> ToolOutcome {
        let action = Action::Other { tool: Self::NAME, argument: &params.argument() }.to_string();
        let seconds = |text: &Option<String>| text.as_deref().map(parse_seconds).transpose();
        let (every_seconds, in_seconds) = match (seconds(&params.every), seconds(&params.after)) {
            (Ok(every), Ok(wait)) => (every, wait),
            (Err(why), _) | (_, Err(why)) => return ToolOutcome::error(why),
        };
        let AddParams { name, cron, time_zone, .. } = params;
        let message = ctx.redact_for_storage(params.message);
        let request = ScheduleRequest::Add { name, message: message.text, cron, every_seconds, in_seconds, time_zone };
        answer(&ctx, action, request, message.note).await
    }
}

/// Reads a duration in whole seconds.
fn parse_seconds(text: &str) -> Result<u64, String> {
    match humantime::parse_duration(text.trim()) {
        Ok(duration) if duration.as_secs() > 0 => Ok(duration.as_secs()),
        _ => Err(format!("not a duration: {text:?}; for example 20m or 4h")),
    }
}

pub(super) struct ScheduleList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {}

impl Tool for ScheduleList {
    const NAME: &'static str = "schedule_list";
    const DESCRIPTION: &'static str = "Lists your schedules.";
    type Params = ListParams;

    fn action(_: &ListParams, _: &ToolContext) -> Result<String, String> {
        Ok(Action::Other { tool: Self::NAME, argument: "" }.to_string())
    }

    async fn run(_: ListParams, ctx: Arc<ToolContext>) -> ToolOutcome {
        let action = Action::Other { tool: Self::NAME, argument: "" }.to_string();
        answer(&ctx, action, ScheduleRequest::List, "").await
    }
}

pub(super) struct ScheduleRemove;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveParams {
    name: String,
}

impl Tool for ScheduleRemove {
    const NAME: &'static str = "schedule_remove";
    const DESCRIPTION: &'static str = "Removes one of your schedules.";
    type Params = RemoveParams;

    fn action(params: &RemoveParams, _: &ToolContext) -> Result<String, String> {
        Ok(Action::Other { tool: Self::NAME, argument: &params.name }.to_string())
    }

    async fn run(params: RemoveParams, ctx: Arc<ToolContext>) -> ToolOutcome {
        let action = Action::Other { tool: Self::NAME, argument: &params.name }.to_string();
        answer(&ctx, action, ScheduleRequest::Remove { name: params.name }, "").await
    }
}

async fn answer(ctx: &ToolContext, action: String, request: ScheduleRequest, note: &str) -> ToolOutcome {
    let Some(outside) = ctx.services.host() else {
        return ToolOutcome::error("the daemon is not ready");
    };
    match outside.schedule(ToolCaller::new(ctx, action), request).await {
        Ok(text) => ToolOutcome::success(text + note),
        Err(failure) => error_outcome(failure),
    }
}
