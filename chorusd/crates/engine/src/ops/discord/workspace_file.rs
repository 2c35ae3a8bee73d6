//! Files of an agent's workspace for people in its channel: what the agent itself may view.

use std::io::Read as _;
use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_permissions::Action;
use chorus_proto::ErrorKind;
use chorus_proto::methods::permissions::Decision;
use chorus_runtime::run_blocking;

use crate::agent::agent_index::{AgentEntry, AgentIndex};
use crate::ops::conversations::{directory_of, find};
use crate::ops::permissions::usable_profile;
use crate::tools::{LineRange, OpenEntry, Workspace, WorkspacePath, workspace_paths};

/// A file or folder of a workspace, with its cleaned path.
#[derive(Debug)]
pub enum WorkspaceEntry {
    File { path: String, bytes: Vec<u8> },
    EmptyFile { path: String },
    Folder { path: String, listing: String },
}

/// Reads a file of at most `max` bytes, or lists a folder, where the tools of a conversation work; `None` means `main`.
///
/// # Errors
/// `denied` if the agent's profile does not allow the agent to view it; `not_found` with the reason if it cannot be
/// opened, `limit_reached` if it is larger.
pub async fn read(
    agents: &AgentIndex,
    agent: &AgentEntry,
    conversation: Option<&str>,
    path: &str,
    max: usize,
) -> Result<WorkspaceEntry> {
    let (profile, path) = (usable_profile(&agent.settings)?.clone(), path.to_owned());
    let key = find(agents, agent, conversation)?;
    let workspace = directory_of(&agent.settings, key, agents.conversations.get(key).as_deref());
    run_blocking(move || {
        let unreadable = |why: String| {
            Error::new(ErrorKind::NotFound, reason_for_people(&why, &workspace)).hint("list the files: `/file`")
        };
        let place = WorkspacePath::parse(&path, &workspace).map_err(unreadable)?;
        let path = place.to_string();
        let action = Action::File { tool: "view", path: &path }.to_string();
        if profile.judge_in_workspace(&action, &workspace_paths(&workspace)).decision != Decision::Allow {
            return Err(Error::new(ErrorKind::Denied, format!("The agent may not view {path} without asking"))
                .hint("ask the agent for it; it asks for permission"));
        }
        let opened = Workspace::open(&workspace).map_err(unreadable)?;
        match opened.open_entry(&place).map_err(unreadable)? {
            OpenEntry::Folder(_) => {
                let listing = opened.view(&place, LineRange::default()).map_err(unreadable)?;
                Ok(WorkspaceEntry::Folder { path, listing })
            }
            OpenEntry::File { file, .. } => {
                let mut bytes = Vec::new();
                let limit = max as u64 + 1;
                file.take(limit).read_to_end(&mut bytes).map_err(|e| unreadable(format!("cannot read {path}: {e}")))?;
                if bytes.len() > max {
                    let most = max >> 20;
                    let what = format!("{path} is larger than {most} MiB, which is Discord's limit");
                    return Err(Error::new(ErrorKind::LimitReached, what).hint("ask the agent to compress or split it"));
                }
                // Discord takes no file without content.
                Ok(if bytes.is_empty() {
                    WorkspaceEntry::EmptyFile { path }
                } else {
                    WorkspaceEntry::File { path, bytes }
                })
            }
        }
    })
    .await
}

/// Takes from a reason what only a model needs to know, and the path of the workspace on this machine.
fn reason_for_people(why: &str, workspace: &Path) -> String {
    const FOR_MODELS: [&str; 3] =
        [", which file tools cannot access", "; use the git tools", "; this tool needs a file"];
    const LINK: &str = ", which file tools do not follow; use its target, if that is in the workspace";
    let why = why.replace(&format!(" ({})", workspace.display()), "");
    let why = why.replace(LINK, ", which Chorus does not follow");
    FOR_MODELS.iter().fold(why, |why, part| why.replace(part, ""))
}
