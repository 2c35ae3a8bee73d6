//! `/file`: a file of the agent's workspace, as an attachment.

use chorus_base::error::Result;
use chorus_engine::ops::discord::workspace_file::{self, WorkspaceEntry};

use super::command_definition::{AGENT_OPTION, Command, OptionKind, optional, read_only_command};
use super::invocation::Invocation;
use super::response::{MAX_ATTACHMENT_BYTES, Response};
use super::text_format::{code_block, inline_code, inline_text};

pub(super) const COMMAND: Command = read_only_command(
    "file",
    "Get a file that the agent made, or list its files",
    &[
        optional(
            "path",
            "For example report.md, or a folder; without it, the files are listed",
            OptionKind::Text(1000),
        ),
        AGENT_OPTION,
    ],
    |call| Box::pin(file(call)),
);

async fn file(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let path = call.args.text("path").map(str::trim).filter(|path| !path.is_empty()).unwrap_or(".");
    let conversation = call.caller.conversation(&agent).await?;
    let agents = &call.caller.app.ops.agents;
    match workspace_file::read(agents, &agent, conversation.as_deref(), path, MAX_ATTACHMENT_BYTES).await? {
        WorkspaceEntry::Folder { path, listing } => {
            let name = inline_text(call, &agent.settings.name, 64);
            let place = if path == "." { format!("Files of **{name}**") } else { inline_code(call, &path, 200) };
            Ok(Response::new(format!("{place}:\n{}", code_block(call, listing.trim_end()))))
        }
        WorkspaceEntry::EmptyFile { path } => Ok(Response::new(format!("{} is empty.", inline_code(call, &path, 200)))),
        WorkspaceEntry::File { path, bytes } => {
            // Secrets are replaced, as everywhere in Discord. A file that is no text goes as it is.
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => call.caller.app.redact(&text).into_bytes(),
                Err(error) => error.into_bytes(),
            };
            let name = path.rsplit('/').next().unwrap_or("file").to_owned();
            Ok(Response { file: Some((name, bytes)), ..Response::new(inline_code(call, &path, 200)) })
        }
    }
}
