//! Creates the first agent when a command needs one, so that nobody has to do it by hand.

use std::path::Path;

use chorus_proto::methods::Method as _;
use chorus_proto::methods::agent::{Init, InitParams, List, ListParams};
use chorus_proto::methods::context::{Append, Restore};
use chorus_proto::methods::continuation::Resume;
use chorus_proto::methods::send::Send;
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{CallError, ErrorKind};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;

/// The name of the first agent outside of a git repository.
const DEFAULT_NAME: &str = "default";

/// The limit on characters of an agent's name.
const MAX_NAME_CHARS: usize = 64;

/// The methods that begin a conversation.
const METHODS: [&str; 4] = [Append::NAME, Send::NAME, Restore::NAME, Resume::NAME];

/// Returns true if `method` begins a conversation, or `app` is about to, and it failed because no agent was named and
/// none is implied.
#[must_use]
pub(crate) fn is_needed(app: &App, method: &str, error: &CallError) -> bool {
    (app.begins_conversation || METHODS.contains(&method))
        && matches!(error, CallError::Rpc(error) if error.kind() == ErrorKind::NoAgent)
}

/// Creates an agent, named after the git repository around the current directory, and says so; one that another request has
/// just created counts as well. Returns false if there are several agents already: then the user must choose one.
///
/// # Errors
/// The agent cannot be created.
pub(crate) fn create(app: &mut App) -> Result<bool, Error> {
    let agents = app.client()?.call::<List>(&ListParams::default())?.agents;
    match agents.iter().filter(|agent| agent.import_source.is_none()).count() {
        0 => {}
        // Since the request, another one has created it.
        1 => return Ok(true),
        _ => return Ok(false),
    }
    if let Some(session) = app.needed_session.clone() {
        // Nothing is created for a conversation that does not exist.
        app.client()?.call::<Get>(&GetParams { session, limit: Some(0), ..GetParams::default() })?;
    }
    let taken = |name: &str| agents.iter().any(|agent| agent.name == name);
    let name = Some(name()).filter(|name| !taken(name)).unwrap_or_else(|| DEFAULT_NAME.to_owned());
    let params = InitParams { name: name.clone(), ..InitParams::default() };
    let created = match app.client()?.call::<Init>(&params) {
        Ok(created) => created.agent,
        // Another command has created it in the meantime.
        Err(CallError::Rpc(error)) if error.kind() == ErrorKind::AlreadyExists => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    if !app.global.quiet {
        let first = if agents.is_empty() { " (your first; `chorusctl agent init` creates others)" } else { "" };
        app.stderr.line(&format!("created agent {name}{first}"));
        let workspace = format::workspace(&created);
        app.stderr.line(&format!("its tools work in {workspace}, not in this directory"));
    }
    Ok(true)
}

/// Returns the name of the first agent: that of the git repository around the current directory, or `default`.
#[must_use]
pub(crate) fn name() -> String {
    let dir = std::env::current_dir().ok();
    dir.and_then(|dir| repository_name(&dir)).unwrap_or_else(|| DEFAULT_NAME.to_owned())
}

/// Returns the name of the git repository that contains `dir`, as the name of an agent.
fn repository_name(dir: &Path) -> Option<String> {
    let root = dir.ancestors().find(|dir| dir.join(".git").exists())?;
    let name: String = root
        .file_name()?
        .to_str()?
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' { c } else { '-' })
        .take(MAX_NAME_CHARS)
        .collect();
    let name = name.trim_start_matches(['-', '_']).trim_end_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_named_after_the_repository() {
        let temp = tempfile::tempdir().expect("a directory");
        let repository = temp.path().join("My Project.rs");
        std::fs::create_dir_all(repository.join(".git")).expect("a directory");
        std::fs::create_dir_all(repository.join("src/deep")).expect("a directory");
        assert_eq!(repository_name(&repository.join("src/deep")).as_deref(), Some("my-project-rs"));
        let odd = temp.path().join("--");
        std::fs::create_dir_all(odd.join(".git")).expect("a directory");
        assert_eq!(repository_name(&odd), None);
    }
}
