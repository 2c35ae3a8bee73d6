//! Finds the directory in which a conversation goes on.

use std::path::{Path, PathBuf};
use std::{env, fs};

use chorus_proto::Trigger;
use chorus_proto::methods::agent::{List, ListParams};

use super::ToolSession;
use crate::app::App;
use crate::commands::format;
use crate::error::Error;

/// Returns the given directory, or the one in which the conversation was held, or the workspace of its agent, or the
/// current one. Links in it are resolved, as the tools do. Only a given one is sure to exist.
///
/// # Errors
/// The given directory does not exist.
pub fn find_project_dir(app: &mut App, session: &ToolSession, given: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(given) = given {
        let failed = |error| Error::for_file(&given.to_string_lossy(), &error);
        let dir = fs::canonicalize(given).map_err(failed)?;
        return match dir.is_dir() {
            true => Ok(dir),
            false => Err(Error::usage(format!("{} is not a directory", given.display()))),
        };
    }
    let known = match &session.source {
        Some(source) => source.project.as_deref().map(PathBuf::from),
        None if session.trigger == Trigger::Import => None,
        None => find_workspace(app, session)?,
    };
    let dir = match known.filter(|dir| dir.is_absolute()) {
        Some(dir) => dir,
        None => env::current_dir().map_err(|error| Error::for_file("the current directory", &error))?,
    };
    Ok(fs::canonicalize(&dir).unwrap_or(dir))
}

/// Returns the workspace of the session's agent, if it exists.
fn find_workspace(app: &mut App, session: &ToolSession) -> Result<Option<PathBuf>, Error> {
    let agents = app.call::<List>(&ListParams { all: true, node: None })?.agents;
    let agent = agents.into_iter().find(|agent| agent.id == session.base.agent_id);
    let workspace = agent.map(|agent| format::workspace_path(&agent));
    Ok(workspace.filter(|dir| dir.is_dir()))
}
