//! The files of a workspace that go with a session.

use std::sync::Arc;

use chorus_proto::{ErrorKind, SessionHeader};
use tokio_util::sync::CancellationToken;

use super::Ops;
use crate::agent::{Facts, workspace};
use crate::failure::{Failure, Result};
use crate::tools::Scene;
use crate::tools::checkpoint::{Refused, bring_back, look};

/// Files that can be brought back.
#[derive(Debug)]
pub struct Files {
    scene: Scene,
    commit: String,
    /// The session that names them.
    session: String,
}

impl Files {
    /// Those of a session, for this agent.
    ///
    /// # Errors
    /// `denied` where changes of the workspace would be lost, `not_found` where it has no such commit, `git_failed`.
    pub async fn of(ops: &Ops, agent: &Arc<Facts>, session: &SessionHeader) -> Result<Self> {
        let name = &session.session_id;
        let Some(commit) = session.workspace_commit.clone() else {
            let why = format!("{name} was saved without the files of the workspace");
            return Err(Failure::new(ErrorKind::NotFound, why).hint(format!(
                "restore it without --files; `chorusctl agent config {} checkpoint_workspace true` has saves commit them",
                agent.name
            )));
        };
        let scene = workspace::scene(&ops.registry, agent, CancellationToken::new());
        let files = Self { scene, commit, session: name.clone() };
        look(&files.scene, &files.commit).await.map_err(|refused| files.failure(refused))?;
        Ok(files)
    }

    /// Brings them back in a new commit; the newest one.
    ///
    /// # Errors
    /// As [`Files::of`].
    pub async fn bring_back(&self) -> Result<String> {
        let message = format!("Files of {}", self.session);
        bring_back(&self.scene, &self.commit, &message).await.map_err(|refused| self.failure(refused))
    }

    fn failure(&self, refused: Refused) -> Failure {
        let (agent, workspace) = (&self.scene.agent_name, self.scene.workspace());
        match refused {
            Refused::Changes(what) => {
                let first: String = what.lines().next().unwrap_or_default().trim().chars().take(200).collect();
                Failure::new(ErrorKind::Denied, format!("changes in the workspace of {agent} would be lost: {first}"))
                    .hint(format!("commit them or put them aside in {}, then try again", workspace.display()))
            }
            Refused::Unknown => {
                let why =
                    format!("the workspace of {agent} does not have the commit {} of {}", self.commit, self.session);
                Failure::new(ErrorKind::NotFound, why).hint("restore it without --files: the messages need no commit")
            }
            Refused::Failed(why) => {
                let first: String = why.lines().next().unwrap_or_default().chars().take(300).collect();
                Failure::new(
                    ErrorKind::GitFailed,
                    format!("the files of {} cannot be brought back: {first}", self.session),
                )
                .hint("nothing was lost; try again, or restore it without --files for its messages")
            }
        }
    }
}
