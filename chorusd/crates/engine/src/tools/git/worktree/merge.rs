//! Merges the branch of a conversation into the branch of the workspace. The merge is computed before any file changes, so
//! that one with conflicts leaves nothing to undo.

use super::merge_record::{MergeRecord, PutBack};
use super::prepare::connect_existing;
use super::remove::{commit_pending, sync_repository};
use super::{Worktree, run_blocking};
use crate::tools::ToolContext;
use crate::tools::git::GitResult;
use crate::tools::git::checkpoint::{RestoreError, RestoreFit, check_fit, open_repository};
use crate::tools::git::run::Git;

/// Settings that name a program for merges.
const DRIVER_PATTERN: &str = r"^merge\..*\.driver$";

/// A branch that was merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedBranch {
    /// The branch of the workspace.
    pub into: String,
    /// The merge commit, or the newest commit if there was nothing to merge.
    pub commit: String,
    /// Merged commits; 0 if there was nothing to merge.
    pub commits: u64,
    /// Files that changed in the workspace.
    pub files: u64,
    /// Lines.
    pub insertions: u64,
    pub deletions: u64,
    /// Changes in the worktree were committed first.
    pub committed: bool,
}

/// The reason why nothing was merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeRefusal {
    /// Changes in the workspace are not committed; with git's message.
    Changes(String),
    /// Both branches changed the same part of these files.
    Conflicts(Vec<String>),
    Failed(String),
    /// Files of the workspace may be those of the merge, and its branch is not. Another merge puts them back and starts again.
    Incomplete(String),
    /// A merge was cut off before, and these files of the workspace were changed since.
    Interrupted(Vec<String>),
}

impl From<String> for MergeRefusal {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Merges the branch of a conversation, after a commit of what is not committed in its worktree. `workspace` is the context
/// of the workspace, `own` that of the worktree. The caller holds both conversations.
///
/// # Errors
/// The workspace is as it was before, unless the merge is incomplete.
pub async fn merge(
    workspace: &ToolContext,
    own: &ToolContext,
    worktree: &Worktree,
    name: &str,
) -> Result<MergedBranch, MergeRefusal> {
    let _alone = workspace.services.git_locks.lock(workspace.agent).await;
    let git = open_repository(workspace).await?;
    let driver = git.run(["config", "--includes", "--name-only", "--get-regexp", DRIVER_PATTERN]).await?;
    if let Some(first) = driver.text.lines().next() {
        return Err(MergeRefusal::Failed(format!(
            "the repository's configuration sets `{first}`, which runs a program"
        )));
    }
    let into = git.run(["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
    if !into.ok {
        return Err(MergeRefusal::Failed("the workspace has no branch checked out".into()));
    }
    let committed = commit_worktree(own, worktree, name).await?;
    let branch = format!("refs/heads/{}", worktree.branch());
    let tip = git.run(["rev-parse", "--verify", "--quiet", &format!("{branch}^{{commit}}")]).await?;
    if !tip.ok {
        return Err(MergeRefusal::Failed(format!("the branch {} does not exist any more", worktree.branch())));
    }
    let (tip, into) = (tip.text.trim().to_owned(), into.text.trim().to_owned());
    let head = git.output(["rev-parse", "--verify", "HEAD^{commit}"]).await?.trim().to_owned();
    complete_interrupted(&git, own, worktree, &head).await?;
    let commits = count(&git.output(["rev-list", "--count", &tip, "--not", &head, "--"]).await?)?;
    if commits == 0 {
        return Ok(MergedBranch { into, commit: head, committed, ..MergedBranch::default() });
    }
    let tree = merge_trees(&git, &head, &tip).await?;
    let message = format!("Merge conversation {name}\n\nConversation: {name}");
    let commit = git.output(["commit-tree", &tree, "-p", &head, "-p", &tip, "-m", &message]).await?;
    let commit = commit.trim().to_owned();
    let fit = check_fit(workspace, &git, &commit).await.map_err(|refused| match refused {
        RestoreError::Changes(what) => MergeRefusal::Changes(what),
        RestoreError::UnknownCommit => MergeRefusal::Failed("the merge commit is missing".into()),
        RestoreError::Failed(why) => MergeRefusal::Failed(why),
    })?;
    let stat = git.output(["diff", "--shortstat", "--no-ext-diff", "--no-textconv", &head, &commit, "--"]).await?;
    apply(&git, own, worktree, MergeRecord { head, tip: commit.clone() }, fit).await?;
    let [files, insertions, deletions] = parse_shortstat(&stat);
    Ok(MergedBranch { into, commit, commits, files, insertions, deletions, committed })
}

/// Commits what is not committed in the worktree, if its directory exists. Returns true if there was something.
async fn commit_worktree(own: &ToolContext, worktree: &Worktree, name: &str) -> GitResult<bool> {
    let wrong = |why: String| format!("the worktree of {name} cannot be committed: {why}");
    let examined = worktree.clone();
    if !run_blocking(move || connect_existing(&examined)).await.map_err(wrong)? {
        return Ok(false);
    }
    let git = open_repository(own).await.map_err(wrong)?;
    commit_pending(&git, worktree, &format!("Changes of {name}")).await.map_err(wrong)
}

/// Merges two commits and returns the tree.
async fn merge_trees(git: &Git<'_>, head: &str, tip: &str) -> Result<String, MergeRefusal> {
    let args = ["-c", "core.quotePath=false", "merge-tree", "--write-tree", "--name-only", "--no-messages", head, tip];
    let said = git.run(args).await?;
    let mut lines = said.text.lines().map(str::to_owned);
    let tree = lines.next().filter(|tree| matches!(tree.len(), 40 | 64) && tree.bytes().all(|b| b.is_ascii_hexdigit()));
    match (tree, said.ok) {
        (Some(tree), true) => Ok(tree),
        (Some(_), false) => Err(MergeRefusal::Conflicts(lines.filter(|line| !line.is_empty()).collect())),
        (None, _) => Err(MergeRefusal::Failed(said.text)),
    }
}

/// Puts back the files of the workspace if a merge was cut off while it replaced them.
async fn complete_interrupted(
    git: &Git<'_>,
    own: &ToolContext,
    worktree: &Worktree,
    head: &str,
) -> Result<(), MergeRefusal> {
    match MergeRecord::read(worktree).await? {
        Some(record) if record.head == head => put_back(git, own, worktree, &record).await,
        // The branch was moved, or has moved on.
        Some(_) => Ok(MergeRecord::remove(worktree).await?),
        None => Ok(()),
    }
}

async fn put_back(
    git: &Git<'_>,
    own: &ToolContext,
    worktree: &Worktree,
    record: &MergeRecord,
) -> Result<(), MergeRefusal> {
    let _command = own.services.file_versions.start_command(own.conversation).await?;
    match record.put_back(git, worktree).await {
        Ok(PutBack::Done) => Ok(()),
        Ok(PutBack::Changed(files)) => Err(MergeRefusal::Interrupted(files)),
        Err(why) => Err(MergeRefusal::Incomplete(why)),
    }
}

/// Replaces the files of `head` with those of `tip`, and moves the branch.
async fn apply(
    git: &Git<'_>,
    own: &ToolContext,
    worktree: &Worktree,
    record: MergeRecord,
    fit: RestoreFit,
) -> Result<(), MergeRefusal> {
    let MergeRecord { head, tip } = &record;
    // Other conversations that work in the workspace must read the files again.
    let _command = own.services.file_versions.start_command(own.conversation).await?;
    if fit == RestoreFit::Clean {
        let synced = worktree.clone();
        // The record is of no use without its commits.
        run_blocking(move || sync_repository(&synced).map_err(|e| e.to_string())).await?;
        record.write(worktree).await?;
        if let Err(why) = git.output(["read-tree", "-m", "-u", head, tip]).await {
            return Err(match put_back(git, own, worktree, &record).await {
                Ok(()) => MergeRefusal::Failed(why),
                Err(_) => MergeRefusal::Incomplete(why),
            });
        }
    }
    if let Err(why) = git.output(["update-ref", "-m", "merge of a conversation", "HEAD", tip, head]).await {
        if git.output(["read-tree", "-m", "-u", tip, head]).await.is_err() {
            return Err(MergeRefusal::Incomplete(format!("the files are merged, but {why}")));
        }
        MergeRecord::remove(worktree).await?;
        return Err(MergeRefusal::Failed(why));
    }
    if let Err(why) = MergeRecord::remove(worktree).await {
        tracing::warn!(why, "cannot remove the record of a merge; the next merge does");
    }
    Ok(())
}

fn count(text: &str) -> GitResult<u64> {
    text.trim().parse().map_err(|_| format!("git printed {text:?} instead of a number"))
}

/// Returns the files, insertions and deletions of `git diff --shortstat`.
fn parse_shortstat(text: &str) -> [u64; 3] {
    let number = |word: &str| {
        let part = text.split(',').find(|part| part.contains(word));
        part.and_then(|part| part.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
    };
    ["file", "insertion", "deletion"].map(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_short_statistic_may_be_missing() {
        for (text, expected) in [
            (" 3 files changed, 10 insertions(+), 2 deletions(-)", [3, 10, 2]),
            (" 1 file changed, 1 insertion(+)", [1, 1, 0]),
            (" 1 file changed, 1 deletion(-)", [1, 0, 1]),
            (" 1 file changed, 0 insertions(+), 0 deletions(-)", [1, 0, 0]),
            ("", [0, 0, 0]),
        ] {
            assert_eq!(parse_shortstat(text), expected, "{text}");
        }
    }
}
