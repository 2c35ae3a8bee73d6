//! `/session`: saved conversations, listed and exported as files.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::conversations::ConversationTarget;
use chorus_engine::ops::session::export;
use chorus_proto::ErrorKind;
use chorus_proto::methods::export::{ExportFormat, ReadParams};
use chorus_proto::pluralize::pluralize;

use super::command_definition::{
    AGENT_OPTION, Command, Completion, OptionKind, Right, Subcommand, Subcommands, optional, required,
};
use super::context::audited_agent;
use super::invocation::Invocation;
use super::response::{MAX_ATTACHMENT_BYTES, Response};
use super::text_format::inline_code;

pub(super) const COMMAND: Command = Command {
    name: "session",
    description: "List saved conversations, or export one as a file",
    default_permissions: None,
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "list",
            description: "List saved conversations, newest first",
            run: |call| Box::pin(super::history::history(call)),
            right: Right::Read,
            private: true,
            options: &[optional("page", "Page number", OptionKind::Number(1)), AGENT_OPTION],
        },
        // The conversation may have parts that the channel was not shown, for example turns from a terminal.
        Subcommand {
            name: "export",
            description: "Export a saved conversation as a file that only you see",
            run: |call| Box::pin(export(call)),
            right: Right::Change,
            private: true,
            options: &[
                required(
                    "session",
                    "Name, ID, number in /session list, or latest",
                    OptionKind::Autocomplete(Completion::Sessions),
                ),
                optional(
                    "format",
                    "File format: md (Markdown, the default), html, json or jsonl",
                    OptionKind::OneOf(&["md", "html", "json", "jsonl"]),
                ),
                AGENT_OPTION,
            ],
        },
    ]),
};

async fn export(call: &Invocation) -> Result<Response> {
    let agent = audited_agent(call, "session.export").await?;
    let form = match call.args.text("format") {
        Some("html") => ExportFormat::Html,
        Some("json") => ExportFormat::Json,
        Some("jsonl") => ExportFormat::Jsonl,
        _ => ExportFormat::Md,
    };
    let (name, messages, text) = read_session(call, agent, form).await?;
    // As everywhere in Discord.
    let text = call.caller.app.redact(&text);
    if text.len() > MAX_ATTACHMENT_BYTES {
        return Err(too_large());
    }
    let about = format!("{}, {}", inline_code(call, &name, 80), pluralize(messages, "message"));
    let file = (format!("{name}.{}", form.as_str()), text.into_bytes());
    Ok(Response { file: Some(file), ..Response::new(about) })
}

/// Reads a session as text. Returns its name and number of messages, too.
async fn read_session(call: &Invocation, agent: Arc<AgentEntry>, form: ExportFormat) -> Result<(String, u64, String)> {
    let key = call.caller.find_conversation(&agent)?;
    let target = ConversationTarget::new(agent, key);
    let (ops, by) = (call.caller.ops(), &call.caller.member.requester);
    let mut selector = call.args.require_text("session")?.to_owned();
    let (mut text, mut next, mut fingerprint) = (String::new(), Some(0), None);
    let (mut name, mut messages) = (String::new(), 0);
    while let Some(offset) = next {
        let params =
            ReadParams { form, offset: Some(offset), fingerprint: fingerprint.take(), ..ReadParams::default() };
        let open = ops.sessions.open_as(by, &target, true, &selector, "export NAME").await?;
        if !open.is_live() {
            // The following pieces are of the same session even if a new one is saved meanwhile.
            selector = open.header.id.to_string();
        }
        let piece = export::read_open(&ops.sessions, &ops.export_positions, &ops.config, open, params).await?;
        text.push_str(&piece.data);
        if text.len() > MAX_ATTACHMENT_BYTES {
            return Err(too_large());
        }
        (next, fingerprint) = (piece.next, piece.fingerprint);
        (name, messages) = (piece.session.header.session_id, piece.session.header.message_count);
    }
    Ok((name, messages, text))
}

fn too_large() -> Error {
    let most = MAX_ATTACHMENT_BYTES >> 20;
    Error::new(ErrorKind::LimitReached, format!("The file is larger than {most} MiB, which is Discord's limit"))
        .hint("choose another format, or ask the owner to export it on the computer that runs Chorus")
}
