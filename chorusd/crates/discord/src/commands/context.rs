//! `/context`.

use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::context::{clear, compact, restore, resume, rewind, save};
use chorus_engine::ops::conversations::ConversationKey;
use chorus_engine::ops::discord::command_support;
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::methods::context::{ClearParams, RestoreParams, RewindParams, SaveParams};
use chorus_proto::methods::continuation::{CompactParams, ResumeParams};
use chorus_proto::pluralize::pluralize;
use chorus_proto::{ErrorKind, Session};
use uuid::Uuid;

use super::command_definition::{
    AGENT_OPTION, Command, CommandOption, Completion, OptionKind, Right, Subcommand, Subcommands, optional, required,
};
use super::confirmation::PendingCommand;
use super::hint_rewrite::rewrite_commands;
use super::invocation::{Caller, Invocation};
use super::response::Response;
use super::text_format::{Redact as _, inline_code, inline_text, session_title, truncate, warning_lines};
use crate::conversations::conversation_param;

const SESSION_OPTION: CommandOption =
    required("session", "Name, ID, number in /session list, or latest", OptionKind::Autocomplete(Completion::Sessions));

pub(super) const COMMAND: Command = Command {
    name: "context",
    description: "Manage the conversation of this channel's agent",
    default_permissions: None,
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "save",
            description: "Save a checkpoint (the conversation continues)",
            run: |call| Box::pin(save(call)),
            right: Right::Change,
            private: false,
            options: &[optional("description", "Short description", OptionKind::Text(1000)), AGENT_OPTION],
        },
        Subcommand {
            name: "clear",
            description: "Clear the conversation",
            run: |call| Box::pin(clear(call)),
            right: Right::Change,
            private: true,
            options: &[optional("save", "Save it before clearing", OptionKind::Bool), AGENT_OPTION],
        },
        Subcommand {
            name: "history",
            description: "List saved conversations, newest first",
            run: |call| Box::pin(super::history::history(call)),
            right: Right::Read,
            private: true,
            options: &[optional("page", "Page number", OptionKind::Number(1)), AGENT_OPTION],
        },
        Subcommand {
            name: "search",
            description: "Find messages of this and earlier conversations",
            run: |call| Box::pin(super::search::search(call)),
            right: Right::Read,
            private: true,
            options: &[required("query", "Words to find, or a \"phrase\"", OptionKind::Text(500)), AGENT_OPTION],
        },
        Subcommand {
            name: "restore",
            description: "Load a saved conversation and continue it",
            run: |call| Box::pin(restore(call)),
            right: Right::Change,
            private: false,
            options: &[
                SESSION_OPTION,
                optional("at", "Load only this many messages from its start", OptionKind::Number(1)),
                optional("discard", "Discard the current conversation without saving it", OptionKind::Bool),
                AGENT_OPTION,
            ],
        },
        Subcommand {
            name: "resume",
            description: "Start a new conversation from a saved one's summary",
            run: |call| Box::pin(resume(call)),
            right: Right::Change,
            private: false,
            options: &[SESSION_OPTION, AGENT_OPTION],
        },
        Subcommand {
            name: "compact",
            description: "Save, then continue in a new conversation from its summary",
            run: |call| Box::pin(compact(call)),
            right: Right::Change,
            private: false,
            options: &[optional("undo", "Undo the last compaction", OptionKind::Bool), AGENT_OPTION],
        },
        Subcommand {
            name: "rewind",
            description: "Undo the last turns",
            run: |call| Box::pin(rewind(call)),
            right: Right::Change,
            private: false,
            options: &[
                optional("turns", "Number of turns (default 1)", OptionKind::Number(1)),
                optional("undo", "Undo the last rewind", OptionKind::Bool),
                AGENT_OPTION,
            ],
        },
    ]),
};

/// How long a summary is waited for: a response can be edited for 15 minutes.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(13 * 60);

/// Returns the agent that a change is about, after recording the change and its requester in the audit log.
pub(super) async fn audited_agent(call: &Invocation, action: &str) -> Result<std::sync::Arc<AgentEntry>> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    call.caller.audit(&agent, action, Right::Change).await?;
    Ok(agent)
}

async fn save(call: &Invocation) -> Result<Response> {
    let by = &call.caller;
    let agent = audited_agent(call, "context.save").await?;
    let params = SaveParams {
        conversation: by.conversation(&agent).await?,
        agent: Some(agent.settings.name.clone()),
        description: call.args.text("description").map(str::to_owned),
        ..SaveParams::default()
    };
    let saved = save::save(&by.ops().agent_resolver, &by.ops().registry, params);
    let saved = with_expected_agent(agent.settings.id, saved).await?;
    let below = warning_lines(by, &saved.warnings);
    let text = saved_text(by, &saved.session, saved.summary_pending) + &below;
    let summary_of = saved.summary_pending.then_some((saved.session.header.id, below));
    Ok(Response { summary_of, ..Response::new(text) })
}

/// Waits until a model's summary has replaced the first one, and returns the new response to the save. Returns `None`
/// if there will be none.
pub(super) async fn wait_for_summary(by: &Caller, (session, below): (Uuid, String)) -> Option<Response> {
    let saved = tokio::time::timeout(SUMMARY_TIMEOUT, command_support::wait_for_summary(by.ops(), session)).await;
    let saved = saved.ok()?.inspect_err(|failure| tracing::warn!(%failure, "cannot show a summary")).ok()??;
    Some(Response::new(saved_text(by, &saved, false) + &below))
}

/// Formats the response to a save. `pending`: a model's summary is on its way.
fn saved_text(by: &Caller, session: &Session, pending: bool) -> String {
    let later = if pending { "\n-# A model is writing a better summary; it will replace this one." } else { "" };
    format!("Saved as {}.{}{later}", session_label(by, session), summary_text(by, session))
}

/// Asks for confirmation before the conversation is cleared.
async fn clear(call: &Invocation) -> Result<Response> {
    let (by, save) = (&call.caller, call.args.flag("save"));
    let agent = by.resolve_agent(call.args.text("agent"))?;
    let conversation = by.find_conversation(&agent)?;
    let Some(info) = by.ops().registry.context_info(conversation) else {
        return Err(Error::new(ErrorKind::NothingToSave, "The conversation is already empty"));
    };
    let messages = pluralize(info.messages, "message");
    let saved = match info.unsaved {
        _ if save => "It will be saved first.".to_owned(),
        0 => "It is already saved.".to_owned(),
        unsaved if unsaved == info.messages => "It is not saved.".to_owned(),
        1 => "1 message is not saved.".to_owned(),
        unsaved => format!("{unsaved} messages are not saved."),
    };
    let text =
        format!("Clear the conversation of **{}** ({messages})? {saved}", inline_text(by, &agent.settings.name, 64));
    Ok(by.app.commands.confirmations.ask(
        by.ops().clock.ticks(),
        &by.member.requester,
        PendingCommand::Clear { conversation, save },
        text,
        "Clear",
    ))
}

/// Clears the conversation after the confirmation.
pub(super) async fn clear_confirmed(by: &Caller, conversation: ConversationKey, save: bool) -> Result<Response> {
    by.check_right(Right::Change)?;
    let agent = conversation.agent;
    let entry = by.ops().agents.by_id(agent).filter(|entry| by.is_guild_agent(entry));
    let entry = entry.ok_or_else(|| Error::new(ErrorKind::AgentNotFound, "This agent was deleted"))?;
    by.resolve_agent(Some(&entry.settings.name))?;
    by.audit(&entry, "context.clear", Right::Change).await?;
    let name = entry.settings.name.clone();
    let params = ClearParams { conversation: conversation_param(conversation), agent: Some(name.clone()), save };
    let cleared = clear::clear(&by.ops().agent_resolver, &by.ops().registry, params);
    let gone = with_expected_agent(agent, cleared).await?;
    let saved =
        gone.saved.as_ref().map_or_else(String::new, |session| format!(" Saved as {}.", session_label(by, session)));
    let pins = if gone.pins > 0 { format!(" and {}", pluralize(gone.pins, "pinned fact")) } else { String::new() };
    let cleared = format!("{}{pins}.{saved}", pluralize(gone.discarded, "message"));
    let (who, name) = (inline_text(by, by.member.name(), 64), inline_text(by, &name, 64));
    let aloud = format!("{who} cleared the conversation of **{name}**: {cleared}");
    Ok(Response { public_text: Some(aloud), ..Response::new(format!("Cleared {cleared}")) })
}

async fn restore(call: &Invocation) -> Result<Response> {
    let (by, session) = (&call.caller, call.args.require_text("session")?.to_owned());
    let agent = audited_agent(call, "context.restore").await?;
    let params = RestoreParams {
        as_conversation: None,
        conversation: by.conversation(&agent).await?,
        agent: Some(agent.settings.name.clone()),
        session,
        at: call.args.number("at"),
        discard: call.args.flag("discard"),
        own: true,
        files: false,
    };
    let ops = by.ops();
    let work = restore::restore_as(
        &ops.agent_resolver,
        &ops.sessions,
        &ops.sessions_lock,
        &ops.registry,
        &ops.clock,
        params,
        &by.member.requester,
    );
    let done = with_expected_agent(agent.settings.id, work).await?;
    let text = format!(
        "Restored {}: {} ({}).{}",
        session_label(by, &done.session),
        inline_text(by, &session_title(by, &done.session, 120), 200),
        pluralize(done.messages, "message"),
        saved_first_text(by, done.saved_first.as_ref()),
    );
    Ok(Response::new(text + &warning_lines(by, &done.warnings)))
}

async fn resume(call: &Invocation) -> Result<Response> {
    let (by, session) = (&call.caller, call.args.require_text("session")?.to_owned());
    let ops = by.ops();
    let agent = audited_agent(call, "context.resume").await?;
    let params = ResumeParams {
        as_conversation: None,
        conversation: by.conversation(&agent).await?,
        agent: Some(agent.settings.name.clone()),
        session,
    };
    let work = resume::resume_as(&ops.agent_resolver, &ops.continuation_starter, params, &by.member.requester);
    let done = with_expected_agent(agent.settings.id, work).await?;
    let saved = saved_first_text(by, done.saved_first.as_ref());
    let opening = opening_text(&done.acknowledgement, done.generated);
    let text = format!("Resumed from {}.{saved}\n\n{opening}", session_label(by, &done.session));
    Ok(Response::new(text + &warning_lines(by, &done.warnings)))
}

async fn compact(call: &Invocation) -> Result<Response> {
    let by = &call.caller;
    let agent = audited_agent(call, "context.compact").await?;
    let undo = call.args.flag("undo");
    let conversation = by.conversation(&agent).await?;
    let params = CompactParams { conversation, agent: Some(agent.settings.name.clone()), undo };
    let ops = by.ops();
    let work = compact::compact(&ops.agent_resolver, &ops.continuation_starter, &ops.summaries, params);
    let done = with_expected_agent(agent.settings.id, work).await?;
    let (before, after) = (done.receipt.tokens_before, done.receipt.tokens_after);
    let mut text = match &done.session {
        Some(session) if undo => format!(
            "Undid the last compaction: the conversation that was saved as {} is live again, with {}.",
            session_label(by, session),
            pluralize(done.messages, "message")
        ),
        Some(session) => {
            format!(
                "Compacted from {before} to {after} tokens. The full conversation was saved as {}.",
                session_label(by, session)
            )
        }
        None => {
            format!("Undid the last compaction: the model sees {} again.", pluralize(done.receipt.left, "message"))
        }
    };
    if let Some(said) = &done.acknowledgement {
        text.push_str(&format!("\n\n{}", opening_text(said, done.generated)));
    }
    Ok(Response::new(text + &warning_lines(by, &done.warnings)))
}

pub(super) async fn rewind(call: &Invocation) -> Result<Response> {
    let agent = audited_agent(call, "context.rewind").await?;
    let undo = call.args.flag("undo");
    let params = RewindParams {
        conversation: call.caller.conversation(&agent).await?,
        agent: Some(agent.settings.name.clone()),
        n: call.args.number("turns"),
        undo,
    };
    let ops = call.caller.ops();
    let rewound = rewind::rewind(&ops.agent_resolver, &ops.registry, params);
    let done = with_expected_agent(agent.settings.id, rewound).await?;
    let moved = pluralize(done.moved, "message");
    let text = if undo {
        format!("Restored {moved}")
    } else {
        format!("Removed {moved}. To undo this: `/context rewind undo:True`")
    };
    Ok(Response::new(format!("{text}. The conversation now has {}.", pluralize(done.messages, "message"))))
}

/// Formats the opening message of a context. In one that rules generated the commands are rewritten; one by a model
/// stays as it is.
fn opening_text(said: &str, generated: bool) -> String {
    if generated { rewrite_commands(said) } else { said.to_owned() }
}

fn session_label(by: &Caller, session: &Session) -> String {
    format!("{} ({})", inline_code(by, &session.header.session_id, 80), inline_code(by, &session.short_id, 40))
}

fn saved_first_text(by: &Caller, session: Option<&Session>) -> String {
    session.map_or_else(String::new, |session| {
        format!(" The previous conversation was saved as {}.", session_label(by, session))
    })
}

fn summary_text(by: &Caller, session: &Session) -> String {
    let text = session.header.summary.as_deref().map(str::trim).filter(|text| !text.is_empty());
    text.map_or_else(String::new, |text| format!("\n{}", truncate(&by.redact(text), 1200)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_quoted_and_rules_name_the_commands_that_there_are_here() {
        let said = "`chorusctl context history` shows them";
        assert_eq!(opening_text(said, false), said);
        assert_eq!(opening_text(said, true), "`/context history` shows them");
    }
}
