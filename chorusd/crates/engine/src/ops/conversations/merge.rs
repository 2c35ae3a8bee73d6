//! The operation `conversations.merge`.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::conversations::{MergeParams, MergeResult};
use chorus_session::conversation::ConversationKey;

use super::target::find;
use super::worktrees::{WorktreeContexts, worktree_contexts};
use crate::ops::agent::{AgentDescriber, AgentResolver};
use crate::tools::worktree::{self, MergeRefusal, MergedBranch};

/// The limit on the files that an error names.
const MAX_NAMED_FILES: usize = 20;

/// Merges the branch of a conversation's git worktree into the branch of the agent's workspace. What is not committed in the
/// worktree is committed first. A merge with conflicts changes nothing.
///
/// # Errors
/// `conversation_not_found`; `denied` for `main`; `not_found` if it has no worktree; `busy` while a turn or a task runs in it
/// or in `main`; `conflict`; `git_failed`; `merge_incomplete`.
pub async fn merge(agents: &AgentResolver, describer: &AgentDescriber, params: MergeParams) -> Result<MergeResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let key = find(&agents.index, &agent, Some(&params.conversation))?;
    let Some(row) = agents.index.conversations.get(key) else {
        return Err(Error::new(ErrorKind::Denied, "the conversation main works in the workspace itself")
            .hint("name another conversation: chorusctl -C NAME conversations merge"));
    };
    let (name, agent_name) = (row.name.as_str(), agent.settings.name.as_str());
    let Some(worktree) = &row.worktree else {
        let hint = match agent.settings.worktrees {
            true => format!("it gets one when it first uses a tool: chorusctl -C {name} send MESSAGE"),
            false => {
                format!("to give conversations separate ones: chorusctl agent config {agent_name} workspace worktree")
            }
        };
        let missing =
            Error::new(ErrorKind::NotFound, format!("the conversation {name} has no git worktree")).hint(hint);
        return Err(agents.index.name_in_hint(key, missing));
    };
    let _main = agents.hold_conversation(&agent, ConversationKey::main(key.agent)).await?;
    let _own = agents.hold_conversation(&agent, key).await?;
    let WorktreeContexts { workspace, own, worktree } = worktree_contexts(agents, &agent, key, worktree).await?;
    let merged = worktree::merge(&workspace, &own, &worktree, name).await;
    let branch = worktree.branch();
    let MergedBranch { into, commit, commits, files, insertions, deletions, committed } =
        merged.map_err(|refused| agents.index.name_in_hint(key, refusal_error(refused, agent_name, name, &branch)))?;
    let conversation = describer.describe_conversation(&agent, key).await?;
    Ok(MergeResult { conversation, branch, into, commit, commits, files, insertions, deletions, committed })
}

fn refusal_error(refused: MergeRefusal, agent: &str, name: &str, branch: &str) -> Error {
    let first = |text: &str| text.lines().next().unwrap_or_default().trim().chars().take(300).collect::<String>();
    match refused {
        MergeRefusal::Changes(what) => {
            let why = format!("the workspace of {agent} has changes that are not committed: {}", first(&what));
            Error::new(ErrorKind::Conflict, why)
                .hint("commit them, for example in the conversation main, then merge again; the workspace is as it was")
        }
        MergeRefusal::Conflicts(files) => {
            let named = list_files(&files);
            let why =
                format!("the workspace and {branch} changed the same lines of {named}; the workspace is as it was");
            Error::new(ErrorKind::Conflict, why).hint(format!(
                "resolve it there, then merge again: chorusctl -C {name} send \"merge the branch of the workspace into \
                 yours and resolve the conflicts\""
            ))
        }
        MergeRefusal::Failed(why) => {
            Error::new(ErrorKind::GitFailed, format!("cannot merge {branch}: {}", first(&why)))
                .hint("fix it, then merge again; the workspace is as it was")
        }
        MergeRefusal::Incomplete(why) => {
            let why = format!("the merge of {branch} was cut off: {}", first(&why));
            Error::new(ErrorKind::MergeIncomplete, why)
                .hint(format!("fix it, then merge again: chorusctl -C {name} conversations merge"))
        }
        MergeRefusal::Interrupted(files) => {
            let named = list_files(&files);
            let why = format!("a merge into the workspace of {agent} was cut off, and changed since: {named}");
            Error::new(ErrorKind::MergeIncomplete, why)
                .hint("move them away, then merge again; the merge restores those of before")
        }
    }
}

/// Lists the first files of an error, and the number of others.
fn list_files(files: &[String]) -> String {
    let named = files.iter().take(MAX_NAMED_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MAX_NAMED_FILES) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
