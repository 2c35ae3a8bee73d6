//! `/settings`.

use chorus_base::error::{Error, Result};
use chorus_engine::ops::models::validate;
use chorus_engine::ops::settings::{set, show};
use chorus_proto::methods::models::{Discovery, ModelsParams};
use chorus_proto::methods::settings::{SetParams, Setting, ShowParams};
use chorus_proto::pluralize::pluralize;
use serde_json::Value;
use serenity::model::Permissions;

use super::command_definition::{
    Command, Completion, OptionKind, RESET_OPTION, Right, Subcommand, Subcommands, optional,
};
use super::hint_rewrite::rewrite_message;
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::{code_block, hint_text, inline_code, inline_text};

pub(super) const COMMAND: Command = Command {
    name: "settings",
    description: "Defaults for agents",
    default_permissions: Some(Permissions::MANAGE_GUILD),
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "model",
            description: "Show or change the default model",
            run: |call| Box::pin(model(call)),
            right: Right::Server,
            private: true,
            options: &[
                optional("model", "Model, as provider/model", OptionKind::Autocomplete(Completion::Models)),
                RESET_OPTION,
            ],
        },
        Subcommand {
            name: "permissions",
            description: "Show or change the default permission profile",
            run: |call| Box::pin(permissions(call)),
            right: Right::Server,
            private: true,
            options: &[
                optional("profile", "Name of the profile", OptionKind::Autocomplete(Completion::Profiles)),
                RESET_OPTION,
            ],
        },
        Subcommand {
            name: "idle",
            description: "Show or change when idle conversations are saved and cleared",
            run: |call| Box::pin(idle(call)),
            right: Right::Server,
            private: true,
            options: &[optional("timeout", "For example 30m or 2h; 0 = never", OptionKind::Text(32)), RESET_OPTION],
        },
        Subcommand {
            name: "show",
            description: "Show the effective settings",
            run: |call| Box::pin(show(call)),
            right: Right::Server,
            private: true,
            options: &[],
        },
        Subcommand {
            name: "validate-keys",
            description: "Test the API keys of all model providers",
            run: |call| Box::pin(validate_keys(call)),
            right: Right::Server,
            private: true,
            options: &[],
        },
    ]),
};

/// Settings that are shown. Paths on the machine and other servers do not concern a channel.
const VISIBLE_KEYS: [&str; 4] = ["default_model", "approval_timeout", "defaults.", "permission_grants."];

/// Shows a setting, or sets it: `option` is the name of the command's option, `name` the key to set it by, `key` the
/// key that it is listed by.
async fn show_or_set(call: &Invocation, option: &str, name: &str, key: &str) -> Result<Response> {
    let ops = call.caller.ops();
    call.caller.check_right(Right::Server)?;
    let value = match (call.args.text(option), call.args.flag("reset")) {
        (Some(_), true) => return Err(Error::invalid(format!("Use either `{option}` or `reset`, not both"))),
        (Some(value), false) => value.to_owned(),
        (None, true) => String::new(),
        (None, false) => {
            let all = show::show(&ops.effective_config, ShowParams {}).await?.settings;
            let now = all.into_iter().find(|setting| setting.key == key);
            let value = now.as_ref().map_or_else(|| "(none)".to_owned(), value_text);
            return Ok(Response::new(format!("{} is {}.", inline_code(call, key, 64), inline_code(call, &value, 200))));
        }
    };
    let params = SetParams { key: name.to_owned(), value: Value::from(value), command: None };
    let (config, agents, by) = (&ops.effective_config, &ops.agent_resolver, &call.caller.member.requester);
    let set = set::set_as(config, agents, &ops.models, &ops.registry, &ops.clock, (params, by));
    let done = ops.store.escalate_fatal(set.await)?;
    let was = done.old.map_or_else(String::new, |old| format!(" It was {} before.", inline_code(call, &old, 200)));
    let without = done.overridden_by.map_or_else(String::new, |variable| {
        format!(
            "\nNote: the variable {} on the computer that runs Chorus overrides it. Ask the owner to remove it.",
            inline_code(call, &variable, 80)
        )
    });
    Ok(Response::new(format!(
        "{} is now {}.{was}{without}",
        inline_code(call, key, 64),
        inline_code(call, &value_text(&done.setting), 200)
    )))
}

async fn model(call: &Invocation) -> Result<Response> {
    call.caller.check_right(Right::Server)?;
    call.args.text("model").map_or(Ok(()), |name| call.caller.check_model(name))?;
    show_or_set(call, "model", "default_model", "default_model").await
}

async fn permissions(call: &Invocation) -> Result<Response> {
    show_or_set(call, "profile", "permissions", "defaults.permissions").await
}

async fn idle(call: &Invocation) -> Result<Response> {
    show_or_set(call, "timeout", "idle_timeout", "defaults.idle_timeout").await
}

async fn show(call: &Invocation) -> Result<Response> {
    call.caller.check_right(Right::Server)?;
    let all = show::show(&call.caller.ops().effective_config, ShowParams {}).await?.settings;
    let shown = all.iter().filter(|setting| VISIBLE_KEYS.iter().any(|key| setting.key.starts_with(key)));
    let lines: Vec<String> =
        shown.map(|setting| format!("{} = {} ({})", setting.key, value_text(setting), setting.from.as_str())).collect();
    Ok(Response::new(format!(
        "{}\nOther settings are visible only on the computer that runs Chorus.",
        code_block(call, &lines.join("\n"))
    )))
}

fn value_text(setting: &Setting) -> String {
    match &setting.value {
        Value::Null => "(none)".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

async fn validate_keys(call: &Invocation) -> Result<Response> {
    call.caller.check_right(Right::Server)?;
    let ops = call.caller.ops();
    let found = validate::validate(&ops.models, &ops.effective_config, ModelsParams {}).await?;
    if found.providers.is_empty() {
        return Ok(Response::new(
            "No model provider is configured. Ask the owner to add one on the computer that runs Chorus.",
        ));
    }
    let lines = found.providers.iter().map(|provider| {
        let name = inline_text(call, &provider.name, 64);
        match provider.found {
            Discovery::Ok => format!("✓ **{name}**: {}", pluralize(provider.models.len() as u64, "model")),
            Discovery::Failed | Discovery::NotRun => {
                let problem = rewrite_message(provider.problem.as_deref().unwrap_or("it was not tested"));
                let hint =
                    provider.hint.as_ref().map_or_else(String::new, |hint| format!(" {}", hint_text(call, hint)));
                format!("✗ **{name}**: {problem}.{hint}")
            }
        }
    });
    Ok(Response::new(lines.collect::<Vec<_>>().join("\n")))
}
