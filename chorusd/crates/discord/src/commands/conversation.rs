//! `/conversation`: the agent's conversations in threads.

use chorus_base::error::{Error, Result};
use chorus_engine::ops::conversations::{ConversationKey, list};
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::ErrorKind;
use chorus_proto::methods::conversations::{Conversation, ListParams};
use chorus_proto::pluralize::pluralize;
use serenity::model::channel::ChannelType;
use serenity::model::id::ChannelId;

use super::command_definition::{Command, OptionKind, Right, Subcommand, Subcommands, required};
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::{inline_text, relative_time};
use crate::channels::ChannelTarget;
use crate::conversations::{self, ConversationPlace};
use crate::threads;

pub(super) const COMMAND: Command = Command {
    name: "conversation",
    description: "Start another conversation with this channel's agent in a thread, or list them",
    default_permissions: None,
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "new",
            description: "Create a thread with a separate conversation",
            run: |call| Box::pin(new(call)),
            right: Right::Threads,
            private: false,
            options: &[required("name", "Name of the thread", OptionKind::Text(MAX_NAME_CHARS))],
        },
        Subcommand {
            name: "list",
            description: "List this channel's conversation and those in its threads",
            run: |call| Box::pin(list(call)),
            right: Right::Read,
            private: true,
            options: &[],
        },
    ]),
};

/// Discord's limit on the name of a thread.
const MAX_NAME_CHARS: u16 = 100;

/// Conversations that are listed.
const MAX_LISTED: usize = 30;

/// The agent's channel is an announcement channel, whose threads are of another kind.
const NO_SUCH_THREAD: u64 = 50_024;

async fn new(call: &Invocation) -> Result<Response> {
    let by = &call.caller;
    let agent = by.resolve_agent(None)?;
    let name = call.args.require_text("name")?.trim().to_owned();
    if name.is_empty() {
        return Err(Error::invalid("The name is empty").hint("choose a name with at least one letter"));
    }
    let (channel, _) = by.app.channels.channel_of(agent.settings.id).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "The agent's channel is not in this server").hint("use the command there")
    })?;
    if let Some(problem) = by.app.channels.thread_problem(channel) {
        return Err(Error::new(ErrorKind::Denied, problem).hint(
            "grant them to Chorus in Discord, or create the thread yourself if only Create Public Threads is missing",
        ));
    }
    by.audit(&agent, "conversation.new", Right::Threads).await?;
    let created = match by.app.rest.create_thread(channel, ChannelType::PublicThread, &by.app.redact(&name)).await {
        Err(error) if error.code() == Some(NO_SUCH_THREAD) => {
            by.app.rest.create_thread(channel, ChannelType::NewsThread, &by.app.redact(&name)).await
        }
        created => created,
    };
    let thread = created.map_err(|error| {
        let is_forbidden = error.is_forbidden();
        let failure = Error::from(error);
        if is_forbidden {
            failure.hint("give Chorus the permissions Create Public Threads and Send Messages in Threads, or create the thread yourself")
        } else {
            failure
        }
    })?;
    threads::insert_found(&by.app, &thread);
    let key = match by.app.channels.threads.get(thread.id) {
        Some(known) => {
            let target = ChannelTarget { agent: agent.clone(), thread: Some(known), direct: None };
            conversations::ensure_conversation(&by.app, &target).await?
        }
        None => {
            return Err(Error::new(ErrorKind::DiscordFailed, "Discord created no thread").hint("try again in a moment"));
        }
    };
    let row = by.ops().agents.conversations.get(key);
    let named = row.map_or_else(String::new, |row| format!(" (`-C {}` in a terminal)", row.name));
    Ok(Response::new(format!("Created <#{}>: a separate conversation{named}.", thread.id)))
}

async fn list(call: &Invocation) -> Result<Response> {
    let by = &call.caller;
    let (ops, agent) = (by.ops(), by.resolve_agent(None)?);
    let params = ListParams { agent: Some(agent.settings.name.clone()), all: true, ..ListParams::default() };
    let listing = list::list(&ops.agent_resolver, &ops.agent_describer, params);
    let found = with_expected_agent(agent.settings.id, listing).await?.conversations;
    let main = ConversationKey::main(agent.settings.id);
    let mut lines = Vec::new();
    for conversation in &found {
        let place = match conversation.origin.as_deref().and_then(ConversationPlace::of_origin) {
            Some(ConversationPlace::Thread(thread)) if is_public(call, thread) => format!("<#{thread}>"),
            // Only its members know of a private thread, and only the person of direct messages.
            Some(_) => continue,
            None if conversation.id == main.id => match by.app.channels.channel_of(main.agent) {
                Some((channel, _)) => format!("<#{channel}>"),
                None => continue,
            },
            None => continue,
        };
        lines.push(format!("{place} · {}", state_text(conversation)));
    }
    let more = lines.len().saturating_sub(MAX_LISTED);
    lines.truncate(MAX_LISTED);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let name = inline_text(call, &agent.settings.name, 64);
    Ok(Response::new(format!("Conversations of **{name}**:\n{}", lines.join("\n"))))
}

fn is_public(call: &Invocation, thread: ChannelId) -> bool {
    call.caller.app.channels.threads.get(thread).is_some_and(|thread| !thread.is_private)
}

fn state_text(conversation: &Conversation) -> String {
    let messages = match &conversation.context {
        Some(context) => {
            format!("{}, last used {}", pluralize(context.messages, "message"), relative_time(context.last_activity_at))
        }
        None => "empty".to_owned(),
    };
    match (conversation.closed_at, &conversation.turn) {
        (Some(_), _) => "archived".to_owned(),
        (None, Some(_)) => format!("{messages}, at work"),
        (None, None) => messages,
    }
}
