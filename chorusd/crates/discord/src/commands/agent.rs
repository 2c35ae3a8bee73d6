//! `/agent`.

use chorus_base::error::{Error, Result};
use chorus_config::agent::DISCORD_KEYS;
use chorus_engine::ops::agent::discord_channel::NEW_CHANNEL;
use chorus_engine::ops::agent::{config, destroy, init, list};
use chorus_engine::ops::conversations::ConversationKey;
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::methods::agent::{ConfigParams, DestroyParams, InitParams, ListParams};
use chorus_proto::pluralize::pluralize;
use chorus_proto::{Agent, ErrorKind};
use serde_json::Value;
use serenity::model::id::{ChannelId, GuildId};
use uuid::Uuid;

use super::command_definition::{
    Command, CommandOption, Completion, OptionKind, RESET_OPTION, Right, Subcommand, Subcommands, optional, required,
};
use super::confirmation::PendingCommand;
use super::hint_rewrite::rewrite_message;
use super::invocation::{Caller, Invocation};
use super::response::Response;
use super::text_format::{Redact as _, code_block, inline_code, inline_text, truncate, warning_lines};
use crate::rest::{Request, Route};

/// Keys that `/agent config` sets.
pub(super) const AGENT_CONFIG_KEYS: &[&str] = &DISCORD_KEYS;

const NAME_OPTION: CommandOption = required("name", "Name of the agent", OptionKind::Autocomplete(Completion::Agents));

pub(super) const COMMAND: Command = Command {
    name: "agent",
    description: "Create, configure, list and delete agents",
    default_permissions: None,
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "init",
            description: "Create an agent with its own channel",
            run: |call| Box::pin(init(call)),
            right: Right::Channels,
            private: false,
            options: &[
                required("name", "Lowercase letters, digits, - and _", OptionKind::Text(64)),
                optional("system_prompt", "System prompt", OptionKind::Text(6000)),
                optional("model", "Model, as provider/model", OptionKind::Autocomplete(Completion::Models)),
                optional("permissions", "Permission profile", OptionKind::Autocomplete(Completion::Profiles)),
                optional(
                    "idle_timeout",
                    "Save and clear after this much inactivity, e.g. 30m; 0 = never",
                    OptionKind::Text(32),
                ),
            ],
        },
        Subcommand {
            name: "destroy",
            description: "Save an agent's conversation and delete the agent",
            run: |call| Box::pin(destroy(call)),
            right: Right::Channels,
            private: true,
            options: &[
                NAME_OPTION,
                optional("keep_files", "Keep its files instead of moving them to the trash", OptionKind::Bool),
            ],
        },
        Subcommand {
            name: "list",
            description: "List agents",
            run: |call| Box::pin(list(call)),
            right: Right::Read,
            private: true,
            options: &[],
        },
        Subcommand {
            name: "config",
            description: "Show or change an agent's configuration",
            run: |call| Box::pin(config(call)),
            right: Right::Channels,
            private: true,
            options: &[
                NAME_OPTION,
                optional("key", "Setting to show or change", OptionKind::OneOf(AGENT_CONFIG_KEYS)),
                optional("value", "New value", OptionKind::Autocomplete(Completion::Values)),
                RESET_OPTION,
            ],
        },
    ]),
};

/// Creates an agent in this guild.
async fn init(call: &Invocation) -> Result<Response> {
    let (by, ops) = (&call.caller, call.caller.ops());
    let text = |name: &str| call.args.text(name).map(str::to_owned);
    let name = call.args.require_text("name")?.trim().to_owned();
    call.args.text("model").map_or(Ok(()), |model| by.check_model(model))?;
    let params = InitParams {
        name,
        system_prompt: text("system_prompt"),
        model: text("model"),
        permissions: text("permissions"),
        idle_timeout: text("idle_timeout"),
    };
    let made =
        init::init_as(&ops.agent_editor, &ops.catalog_sync, params, &by.member.requester, Some(by.guild.get())).await;
    let made = ops.store.escalate_fatal(made)?;
    let verb = if made.revived { "Restored" } else { "Created" };
    let place = match &made.agent.channel_id {
        Some(channel) => format!(": <#{channel}>."),
        None => {
            format!(
                ". It has no channel. To create one: `/agent config name:{} key:channel_id value:new`",
                made.agent.name
            )
        }
    };
    let text = format!("{verb} agent **{}**{place}", inline_text(by, &made.agent.name, 64));
    Ok(Response::new(text + &warning_lines(by, &made.warnings)))
}

/// Asks for confirmation before an agent is destroyed.
async fn destroy(call: &Invocation) -> Result<Response> {
    let by = &call.caller;
    let agent = by.resolve_agent(Some(call.args.require_text("name")?))?;
    let (id, keep_files) = (agent.settings.id, call.args.flag("keep_files"));
    let live = by.ops().registry.context_info(ConversationKey::main(id)).map_or_else(String::new, |info| {
        format!(" Its conversation ({}) is saved first.", pluralize(info.messages, "message"))
    });
    let files = if keep_files { "are kept" } else { "are moved to the trash" };
    let name = inline_text(by, &agent.settings.name, 64);
    let text = format!("Delete agent **{name}**?{live} Its files {files}.");
    Ok(by.app.commands.confirmations.ask(
        by.ops().clock.ticks(),
        &by.member.requester,
        PendingCommand::Destroy { agent: id, keep_files },
        text,
        "Delete",
    ))
}

/// Destroys an agent after the confirmation.
pub(super) async fn destroy_confirmed(by: &Caller, agent: Uuid, keep_files: bool) -> Result<Response> {
    by.check_right(Right::Channels)?;
    let ops = by.ops();
    let entry = ops.agents.by_id(agent).filter(|entry| by.is_guild_agent(entry));
    let entry = entry.ok_or_else(|| Error::new(ErrorKind::AgentNotFound, "This agent was already deleted"))?;
    by.audit(&entry, "agent.destroy", Right::Channels).await?;
    let name = entry.settings.name.clone();
    let params = DestroyParams { name: name.clone(), keep_files, purge: false };
    let gone = with_expected_agent(agent, destroy::destroy(&ops.agent_editor, &ops.tasks, params)).await;
    let gone = ops.store.escalate_fatal(gone)?;
    let saved = gone.saved.map_or_else(String::new, |session| {
        format!(" Its conversation was saved as {}.", inline_code(by, &session.header.session_id, 80))
    });
    let said = format!("Agent **{}** was deleted.{saved}", inline_text(by, &name, 64));
    let text = format!("{said}{}", warning_lines(by, &gone.warnings));
    let aloud = format!("{said} Deleted by {}.", inline_text(by, by.member.name(), 64));
    // If the agent's channel is this one, nobody reads it any more.
    let own = entry.channel_id.as_deref() == Some(&*by.channel.to_string());
    Ok(Response { public_text: (!own).then_some(aloud), ..Response::new(text) })
}

/// Lists the agents that the caller may see.
async fn list(call: &Invocation) -> Result<Response> {
    let visible: Vec<Uuid> = call.caller.visible_agents().iter().map(|entry| entry.settings.id).collect();
    if visible.is_empty() {
        let hint = if call.caller.member.rights.manage_channels { " Create one with `/agent init`." } else { "" };
        return Ok(Response::new(format!("No agents here.{hint}")));
    }
    let ops = call.caller.ops();
    let listing = list::list(
        &ops.agent_resolver,
        &ops.agent_describer,
        &ops.store.catalog.agents,
        &ops.agents,
        ListParams::default(),
    );
    let found = listing.await?;
    let lines: Vec<String> = found
        .agents
        .iter()
        .filter(|agent| visible.contains(&agent.id))
        .map(|agent| format!("- {}", agent_line(&call.caller, agent)))
        .collect();
    Ok(Response::new(lines.join("\n")))
}

/// Formats an agent on one line.
pub(super) fn agent_line(by: &Caller, agent: &Agent) -> String {
    let mut parts = vec![format!("**{}**", inline_text(by, &agent.name, 64))];
    parts.extend(agent.channel_id.as_ref().map(|channel| format!("<#{channel}>")));
    parts.push(match &agent.context {
        Some(context) => format!("active, {}", pluralize(context.messages, "message")),
        None => "idle".to_owned(),
    });
    parts.extend(agent.model.as_ref().map(|model| inline_code(by, model, 100)));
    parts
        .push(agent.permissions.as_str().map_or_else(|| "custom profile".to_owned(), |name| inline_code(by, name, 64)));
    parts
        .extend(agent.problem.as_ref().map(|problem| format!("⚠ {}", inline_text(by, &rewrite_message(problem), 200))));
    parts.join(" · ")
}

/// Shows or sets the configuration of an agent.
async fn config(call: &Invocation) -> Result<Response> {
    let (by, ops, given) = (&call.caller, call.caller.ops(), &call.args);
    let agent = by.resolve_agent(Some(given.require_text("name")?))?;
    let (id, name) = (agent.settings.id, agent.settings.name.clone());
    let key = given.text("key").map(str::to_owned);
    // Discord offers no other keys, but it does not enforce which ones may be used.
    if let Some(key) = key.as_deref().filter(|key| !AGENT_CONFIG_KEYS.contains(key)) {
        return Err(Error::new(
            ErrorKind::Denied,
            format!("The setting {} cannot be changed from Discord", truncate(&by.redact(key), 80)),
        )
        .hint("ask the owner to change it on the computer that runs Chorus"));
    }
    let value = match (given.text("value"), given.flag("reset")) {
        (Some(_), true) => return Err(Error::invalid("Use either `value` or `reset`, not both")),
        (value, reset) => value.map(str::to_owned).or_else(|| reset.then(String::new)),
    };
    let Some(key) = key else {
        if value.is_some() {
            return Err(Error::invalid("`key` is missing").hint("choose the setting to change with the option `key`"));
        }
        let params = ConfigParams { name: name.clone(), key: None, value: None };
        let all = with_expected_agent(id, config::config(&ops.agent_editor, params)).await?.config;
        let all = all.iter().filter(|(key, _)| AGENT_CONFIG_KEYS.contains(&key.as_str()));
        let lines: Vec<String> = all.map(|(key, value)| format!("{key}: {}", config_value_text(value))).collect();
        return Ok(Response::new(format!("**{}**\n{}", inline_text(by, &name, 64), code_block(by, &lines.join("\n")))));
    };
    let value = match value {
        Some(text) if key == "channel_id" => Some(parse_channel(by, &text).await?),
        Some(text) if key == "model" && !text.is_empty() => by.check_model(&text).map(|()| Some(text))?,
        value => value,
    };
    let params = ConfigParams { name: name.clone(), key: Some(key.clone()), value: value.clone().map(Value::from) };
    let done = with_expected_agent(id, config::config_as(&ops.agent_editor, params, &by.member.requester)).await;
    let done = ops.store.escalate_fatal(done)?;
    let now = done.config.get(&key).map(config_value_text).unwrap_or_default();
    let (name, key) = (inline_text(by, &name, 64), inline_code(by, &key, 64));
    if value.is_none() {
        return Ok(Response::new(format!("**{name}**: {key}\n{}", code_block(by, &now))));
    }
    let was = done
        .old
        .as_ref()
        .map_or_else(String::new, |old| format!(" It was {} before.", inline_code(by, &config_value_text(old), 300)));
    Ok(Response::new(format!("**{name}**: {key} is now {}.{was}", inline_code(by, &now, 300))))
}

fn config_value_text(value: &Value) -> String {
    match value {
        Value::Null => "(default)".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Resolves the value for `channel_id`: a channel of this guild to its id; empty means none, `new` one that is to be
/// created.
async fn parse_channel(by: &Caller, given: &str) -> Result<String> {
    #[derive(serde::Deserialize)]
    struct ChannelGuild {
        guild_id: Option<GuildId>,
    }
    if given.is_empty() || given.trim() == NEW_CHANNEL {
        return Ok(given.trim().to_owned());
    }
    let id = given.trim().trim_start_matches("<#").trim_end_matches('>').parse().ok().filter(|id| *id != 0);
    let id: u64 = id.ok_or_else(|| Error::invalid("This is not a channel").hint("enter it as #name or by its ID"))?;
    let request = Request::get(Route::Channel { channel_id: ChannelId::new(id) });
    let elsewhere = || Error::invalid("No such channel in this server").hint("enter it as #name or by its ID");
    match by.app.rest.call::<ChannelGuild>(request).await {
        Ok(found) if found.guild_id == Some(by.guild) => Ok(id.to_string()),
        Ok(_) => Err(elsewhere()),
        Err(error) if error.is_transient() => Err(error.into()),
        Err(_) => Err(elsewhere()),
    }
}
