//! Checks models: the keys of providers, the last discovery, and the models that agents name.

use std::time::Duration;

use chorus_base::error::Result;
use chorus_llm::{DiscoveryStatus, KeyStatus, ProviderModels, SETUP_HINT};
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::shell_word::shell_word;
use chorus_runtime::run_blocking;
use jiff::Timestamp;

use super::{check, check_with, join_some};
use crate::ops::Ops;

const VALIDATE_HINT: &str = "check now: chorusctl models validate";

/// Checks providers, the default model, and the models of agents. Sends no requests; only checks that keys exist.
pub(super) async fn checks(ops: &Ops) -> Result<Vec<Check>> {
    let models = ops.models.clone();
    let keys = run_blocking(move || Ok(models.check_keys())).await?;
    let available = ops.models.available();
    let now = ops.clock.now();
    if keys.is_empty() && available.providers.is_empty() {
        return Ok(vec![check_with("models", Verdict::Info, "no model provider configured", SETUP_HINT)]);
    }
    let mut checks: Vec<Check> =
        keys.iter().map(|key| provider_check(key, available.provider(&key.provider), now)).collect();
    let local = available.providers.iter().filter(|provider| provider.local);
    checks.extend(local.map(|local| {
        let text = format!("found on this machine, {}", describe_listing(local, now));
        check(&provider_check_name(&local.name), Verdict::Ok, text)
    }));
    checks.push(default_model_check(ops));
    checks.extend(agents_check(ops));
    Ok(checks)
}

fn provider_check_name(provider: &str) -> String {
    format!("provider {provider}")
}

fn provider_check(key: &KeyStatus, found: Option<&ProviderModels>, now: Timestamp) -> Check {
    let name = provider_check_name(&key.provider);
    if let Err(problem) = &key.found {
        let hint = problem.hint.clone().unwrap_or_default();
        return check_with(&name, Verdict::Warn, problem.message.clone(), hint);
    }
    match found.map(|found| (found, found.found)) {
        Some((found, DiscoveryStatus::Ok)) => {
            check(&name, Verdict::Ok, format!("{}; {}", key.place, describe_listing(found, now)))
        }
        Some((found, DiscoveryStatus::Failed)) => {
            let problem = found.problem.clone().unwrap_or_else(|| "cannot list its models".to_owned());
            let text = format!("{problem} (checked {})", format_age(found.checked_at, now));
            check_with(&name, Verdict::Warn, text, found.hint.as_deref().unwrap_or(VALIDATE_HINT))
        }
        Some((_, DiscoveryStatus::NotRun)) | None => {
            check_with(&name, Verdict::Info, format!("{}; models not listed yet", key.place), VALIDATE_HINT)
        }
    }
}

/// Formats `2 models, asked 5m ago`.
fn describe_listing(provider: &ProviderModels, now: Timestamp) -> String {
    let count = provider.models.len();
    let models = if count == 1 { "model" } else { "models" };
    format!("{count} {models}, checked {}", format_age(provider.checked_at, now))
}

/// Formats an age in the largest unit that fits.
fn format_age(at: Option<Timestamp>, now: Timestamp) -> String {
    let Some(at) = at else { return "at an unknown time".to_owned() };
    let seconds = Duration::try_from(now.duration_since(at)).unwrap_or_default().as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{}m ago", seconds / 60),
        3_600..86_400 => format!("{}h ago", seconds / 3_600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

fn default_model_check(ops: &Ops) -> Check {
    const NAME: &str = "default model";
    let defaults = ops.defaults();
    let Some(name) = defaults.default_model.as_deref() else {
        let model = ops
            .models
            .only_model()
            .map_or_else(|| "MODEL".to_owned(), |model| shell_word(&model.to_string()).into_owned());
        let hint = format!("set one: chorusctl config set default_model {model}");
        return check_with(NAME, Verdict::Info, "none: agents without their own model cannot answer", hint);
    };
    match ops.models.resolve(name) {
        Ok(target) => check(NAME, Verdict::Ok, target.to_string()),
        Err(failure) => {
            let hint =
                failure.hint.unwrap_or_else(|| "set another: chorusctl config set default_model MODEL".to_owned());
            check_with(NAME, Verdict::Fail, format!("{name}: {}", failure.message), hint)
        }
    }
}

/// Reports agents that name an unknown model.
fn agents_check(ops: &Ops) -> Option<Check> {
    let defaults = ops.defaults();
    let default = defaults.default_model.as_deref();
    let wrong = |model: &&str| Some(*model) != default && ops.models.resolve(model).is_err();
    let mut without: Vec<String> = ops
        .agents
        .all()
        .iter()
        .filter_map(|entry| {
            let model = entry.settings.model.as_deref().filter(wrong)?;
            Some(format!("{} ({model})", entry.settings.name))
        })
        .collect();
    without.sort();
    let hint = "list models with `chorusctl models`, then set another: chorusctl agent config NAME model MODEL";
    let text = format!("missing for {}: {}", without.len(), join_some(&without));
    (!without.is_empty()).then(|| check_with("models of agents", Verdict::Warn, text, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_at_a_glance() {
        let now: Timestamp = "2026-02-12T10:00:00Z".parse().unwrap();
        let ago = |seconds: i64| format_age(Timestamp::from_second(now.as_second() - seconds).ok(), now);
        let said = [-5, 59, 60, 3_599, 7_200, 86_400 * 3].map(ago);
        assert_eq!(said, ["just now", "just now", "1m ago", "59m ago", "2h ago", "3d ago"]);
    }
}
