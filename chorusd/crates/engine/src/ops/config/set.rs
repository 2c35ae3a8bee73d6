//! The operation `config.set`.

use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_config::{Origin, RUNTIME_SETTINGS, edit};
use chorus_proto::methods::config::{SetParams, SetResult};
use chorus_proto::methods::settings;
use chorus_runtime::run_blocking;

use super::{ConfigReloader, is_below};
use crate::ops::settings::set::{audit_row, set_as};
use crate::ops::settings::to_setting;

/// Sets or removes a key of the configuration file, and reads the file again. A value of `settings set` that would hide
/// the one of the file is removed.
///
/// # Errors
/// `invalid_params` for a key or a value that cannot be used, `invalid_config` if the rest of the file cannot be,
/// `model_unavailable`. Nothing is changed then.
pub async fn set(reloader: &ConfigReloader, params: SetParams) -> Result<SetResult> {
    let ConfigReloader { effective, agents, models, registry, clock, store, .. } = reloader;
    let _one_at_a_time = effective.lock_file().await;
    let (file, SetParams { key, value }) = (reloader.file(), params);
    if let Some(model) = value.as_deref().filter(|model| key == "default_model" && !model.is_empty()) {
        models.check_assignable(model)?;
    }
    let command = if value.is_some() { "config set" } else { "config unset" };
    let record = |key: &str, old: Option<String>, new: Option<String>| {
        let row = audit_row(clock.now(), &Requester::Owner, (key, command.to_owned()), old, new);
        store.catalog.audit.append(row)
    };
    let edited = loop {
        let (file, key, typed) = (file.clone(), key.clone(), value.clone());
        let prepared = run_blocking(move || {
            let env = |name: &str| std::env::var_os(name);
            match &typed {
                Some(value) => edit::prepare_set(&file, &key, value, &env),
                None => edit::prepare_unset(&file, &key, &env),
            }
        });
        let prepared = prepared.await?;
        let (key, old, changes_text) = (prepared.key().to_owned(), prepared.old_value(), prepared.changes_text());
        // Before the file is another one: no change is without its row.
        if changes_text {
            record(&key, old.clone(), value.clone()).await?;
        }
        match run_blocking(move || prepared.commit()).await {
            Ok(Some(edited)) => break edited,
            Ok(None) => {}
            Err(failure) => {
                if changes_text {
                    record(&key, value, old).await?;
                }
                return Err(failure);
            }
        }
    };
    let applied = reloader.reload(command, Some(&edited.key)).await?;
    let mut removed = None;
    if let Some((short, _)) = RUNTIME_SETTINGS.iter().find(|(_, whole)| *whole == edited.key) {
        let params = settings::SetParams {
            key: (*short).to_owned(),
            value: serde_json::Value::Null,
            command: Some(command.to_owned()),
        };
        removed = set_as(effective, agents, models, registry, clock, (params, &Requester::Owner)).await?.old;
    }
    let config = effective.current();
    let overridden_by = match config.origins.get(&edited.key) {
        Some(Origin::Environment(variable)) => Some(variable.clone()),
        _ => None,
    };
    let shown = config.to_entries().into_iter().find(|(key, _)| *key == edited.key);
    Ok(SetResult {
        file: edited.file.to_string_lossy().into_owned(),
        changed: edited.changed,
        created: edited.created,
        old: edited.old,
        setting: shown.map(|(key, value)| to_setting(&config, key, value)),
        removed_setting: removed,
        overridden_by,
        restart: applied.restart.iter().any(|key| is_below(key, &edited.key) || is_below(&edited.key, key)),
        key: edited.key,
    })
}
