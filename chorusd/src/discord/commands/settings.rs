//! `/settings`.

use chorus_proto::methods::models::{Discovery, ModelsParams};
use chorus_proto::methods::settings::{SetParams, Setting, ShowParams};
use serde_json::Value;

use super::call::Call;
use super::definitions::Right;
use super::reply::Reply;
use super::wording::here;
use super::words::{block, code, count, plain};
use crate::failure::{Failure, Result};
use crate::ops::models::validate;
use crate::ops::settings::{set, show};

/// What is shown. Places on the machine and other servers are none of a channel's business.
const SHOWN: [&str; 4] = ["default_model", "approval_timeout", "defaults.", "permission_grants."];

/// Shows one setting, or sets it: `option` is what is given, `name` how it is set, `key` how it is shown.
async fn one(call: &Call, option: &str, name: &str, key: &str) -> Result<Reply> {
    let ops = call.by.ops();
    call.by.may(Right::Server)?;
    let value = match (call.given.text(option), call.given.yes("reset")) {
        (Some(_), true) => return Err(Failure::invalid(format!("`{option}` does not go with `reset`"))),
        (Some(value), false) => value.to_owned(),
        (None, true) => String::new(),
        (None, false) => {
            let all = show::show(ops, ShowParams {}).await?.settings;
            let now = all.into_iter().find(|setting| setting.key == key);
            let value = now.as_ref().map_or_else(|| "(none)".to_owned(), value);
            return Ok(Reply::new(format!("{} is {}.", code(call, key, 64), code(call, &value, 200))));
        }
    };
    let params = SetParams { key: name.to_owned(), value: Value::from(value) };
    let done = ops.store.judged(set::set_by(ops, params, &call.by.person.requester).await)?;
    let was = done.old.map_or_else(String::new, |old| format!(" What was set before: {}.", code(call, &old, 200)));
    let without = done.overridden_by.map_or_else(String::new, |variable| {
        format!("\nNote: it has no effect while {} is set where chorusd starts.", code(call, &variable, 80))
    });
    Ok(Reply::new(format!(
        "{} is now {}.{was}{without}",
        code(call, key, 64),
        code(call, &self::value(&done.setting), 200)
    )))
}

pub async fn model(call: &Call) -> Result<Reply> {
    call.by.may(Right::Server)?;
    call.given.text("model").map_or(Ok(()), |name| call.by.knows_model(name))?;
    one(call, "model", "default_model", "default_model").await
}

pub async fn permissions(call: &Call) -> Result<Reply> {
    one(call, "profile", "permissions", "defaults.permissions").await
}

pub async fn idle(call: &Call) -> Result<Reply> {
    one(call, "timeout", "idle_timeout", "defaults.idle_timeout").await
}

pub async fn show(call: &Call) -> Result<Reply> {
    call.by.may(Right::Server)?;
    let all = show::show(call.by.ops(), ShowParams {}).await?.settings;
    let shown = all.iter().filter(|setting| SHOWN.iter().any(|key| setting.key.starts_with(key)));
    let lines: Vec<String> =
        shown.map(|setting| format!("{} = {} ({})", setting.key, value(setting), setting.from.as_str())).collect();
    Ok(Reply::new(format!(
        "{}\n`chorusctl settings show` at the terminal has all of them.",
        block(call, &lines.join("\n"))
    )))
}

fn value(setting: &Setting) -> String {
    match &setting.value {
        Value::Null => "(none)".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

pub async fn validate_keys(call: &Call) -> Result<Reply> {
    call.by.may(Right::Server)?;
    let found = validate::validate(call.by.ops(), ModelsParams {}).await?;
    if found.providers.is_empty() {
        return Ok(Reply::new("No provider is configured. `[providers]` of config.toml is the place."));
    }
    let lines = found.providers.iter().map(|provider| {
        let name = plain(call, &provider.name, 64);
        match provider.found {
            Discovery::Ok => format!("✓ **{name}**: {}", count(provider.models.len() as u64, "model")),
            Discovery::Failed | Discovery::NotRun => {
                let problem = provider.problem.as_deref().unwrap_or("it was not asked");
                let hint = provider.hint.as_ref().map_or_else(String::new, |hint| format!(" Hint: {}", here(hint)));
                format!("✗ **{name}**: {problem}.{hint}")
            }
        }
    });
    Ok(Reply::new(lines.collect::<Vec<_>>().join("\n")))
}
