//! Restores the files of a workspace to the checkpoint of a session.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_proto::{ErrorKind, SessionHeader};
use chorus_session::conversation::ConversationKey;
use tokio_util::sync::CancellationToken;

use crate::agent::checkpoint_on_save;
use crate::agent::registry::Registry;
use crate::tools::checkpoint::{RestoreError, check_restore, restore_files};
use crate::tools::{ToolContext, WorkingDirectory};

/// The files of a checkpoint, ready to be restored.
#[derive(Debug)]
pub struct CheckpointFiles {
    context: ToolContext,
    commit: String,
    /// The name of the session.
    session: String,
}

impl CheckpointFiles {
    /// Checks that the files of `session` can be restored in the workspace of `agent`.
    ///
    /// # Errors
    /// `denied` if changes in the workspace would be lost, `not_found` if the workspace does not have the commit,
    /// `git_failed`.
    pub async fn prepare(
        registry: &Arc<Registry>,
        agent: &Arc<AgentSettings>,
        conversation: ConversationKey,
        session: &SessionHeader,
    ) -> Result<Self> {
        let name = &session.session_id;
        let Some(commit) = session.workspace_commit.clone() else {
            let why = format!("{name} was saved without the workspace files");
            return Err(Error::new(ErrorKind::NotFound, why).hint(format!(
                "restore it without --files; to include files in future saves: chorusctl agent config {} \
                 checkpoint_workspace true",
                agent.name
            )));
        };
        let ctx = checkpoint_on_save::tool_context(registry, agent, conversation, CancellationToken::new()).await;
        if let WorkingDirectory::Unavailable(why) = ctx.place {
            return Err(Error::new(ErrorKind::GitFailed, why).hint("restore only the messages: leave out --files"));
        }
        let files = Self { context: ctx, commit, session: name.clone() };
        check_restore(&files.context, &files.commit).await.map_err(|refused| files.to_error(refused))?;
        Ok(files)
    }

    /// Restores the files in a new commit and returns the newest commit. Fails like [`CheckpointFiles::prepare`].
    pub async fn restore(&self) -> Result<String> {
        let message = format!("Files of {}", self.session);
        restore_files(&self.context, &self.commit, &message).await.map_err(|refused| self.to_error(refused))
    }

    fn to_error(&self, refused: RestoreError) -> Error {
        let (agent, workspace) = (&self.context.agent_name, self.context.workspace());
        match refused {
            RestoreError::Changes(what) => {
                let first: String = what.lines().next().unwrap_or_default().trim().chars().take(200).collect();
                Error::new(
                    ErrorKind::Denied,
                    format!("uncommitted changes in the workspace of {agent} would be lost: {first}"),
                )
                .hint(format!("commit or stash them in {}, then try again", workspace.display()))
            }
            RestoreError::UnknownCommit => {
                let why =
                    format!("the workspace of {agent} does not contain commit {} of {}", self.commit, self.session);
                Error::new(ErrorKind::NotFound, why).hint("restore only the messages: leave out --files")
            }
            RestoreError::Failed(why) => {
                let first: String = why.lines().next().unwrap_or_default().chars().take(300).collect();
                Error::new(ErrorKind::GitFailed, format!("cannot restore the files of {}: {first}", self.session))
                    .hint("nothing was lost; try again, or leave out --files to restore only the messages")
            }
        }
    }
}
