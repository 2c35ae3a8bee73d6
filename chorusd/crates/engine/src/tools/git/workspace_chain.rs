//! The checkpoints of a workspace as a chain of bundles, for other nodes. Each bundle brings one commit, the tip: its parents are
//! the former tip, the newest commit of the workspace and what else is new on branches and in checkpoints; its message says which
//! branches there are. Models cannot call this. Git is run as for checkpoints.

use std::fs::File;
use std::path::PathBuf;

use super::GitResult;
use super::checkpoint::open_repository;
use super::run::Git;
use crate::tools::ToolContext;

/// The tip that this workspace and the stored chain have in common.
pub(super) const CHAIN_REF: &str = "refs/chorus/workspace";

/// The tip in a bundle, and while one is made.
pub(super) const BUNDLE_REF: &str = "refs/chorus/workspace-bundle";

/// Maximum number of branches that the message names.
const MAX_BRANCHES: usize = 100;

/// Maximum number of parents of a tip: the newest commits that the former tip does not have.
const MAX_NEW_COMMITS: usize = 200;

/// Largest bundle in bytes: it is held in memory when it is stored.
const MAX_BUNDLE_BYTES: u64 = 256 << 20;

/// The state of the branches that the message of a tip describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkspaceState {
    /// The branch, as `refs/heads/…`; `None` if HEAD is detached.
    pub head: Option<String>,
    /// The newest commit.
    pub commit: String,
    /// Commit and name of each branch.
    pub branches: Vec<(String, String)>,
}

impl WorkspaceState {
    fn to_message(&self) -> String {
        let head = self.head.as_deref().unwrap_or("detached");
        let branches = self.branches.iter().map(|(commit, name)| format!("branch {commit} {name}\n"));
        format!("Workspace\n\nhead {head}\ncommit {}\n{}", self.commit, branches.collect::<String>())
    }

    /// Parses a message; `None` if it is not one of a tip.
    pub(super) fn parse(message: &str) -> Option<Self> {
        let (mut head, mut commit, mut branches) = (None, None, Vec::new());
        for line in message.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("head"), Some("detached"), None) => {}
                (Some("head"), Some(name), None) if is_branch(name) => head = Some(name.to_owned()),
                (Some("commit"), Some(id), None) if is_commit_id(id) => commit = Some(id.to_owned()),
                (Some("branch"), Some(id), Some(name)) if is_commit_id(id) && is_branch(name) => {
                    branches.push((id.to_owned(), name.to_owned()));
                }
                _ => {}
            }
        }
        Some(Self { head, commit: commit?, branches })
    }
}

fn is_branch(name: &str) -> bool {
    name.strip_prefix("refs/heads/").is_some_and(|rest| !rest.is_empty())
}

/// Returns whether a text is the id of a commit, in full.
pub(super) fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the commit that a reference names.
pub(super) async fn resolve(git: &Git<'_>, name: &str) -> GitResult<Option<String>> {
    let found = git.run(["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).await?;
    Ok((found.ok && is_commit_id(&found.text)).then_some(found.text))
}

/// Returns the tip that this workspace and the chain had in common last; `None` also if there is no repository.
pub async fn known_tip(ctx: &ToolContext) -> GitResult<Option<String>> {
    if ctx.workspace().join(".git").symlink_metadata().is_err() {
        return Ok(None);
    }
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    resolve(&Git::new(ctx).await?, CHAIN_REF).await
}

/// A bundle that continues the chain.
#[derive(Debug)]
pub struct ChainBundle {
    /// The former tip; `None` if the bundle is complete.
    pub base: Option<String>,
    pub tip: String,
    /// The bundle itself.
    pub file: File,
}

/// Makes the bundle of everything that is committed and that the chain up to `former` does not have; `None` if it has all.
/// It is complete if `complete` says so, or if this workspace does not have `former`. `out` is an empty file.
///
/// # Errors
/// The reason why there is no bundle, as a text that continues "because".
pub async fn make_bundle(
    ctx: &ToolContext,
    former: Option<&str>,
    complete: bool,
    out: File,
) -> GitResult<Option<ChainBundle>> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = open_repository(ctx).await?;
    let shallow = ctx.workspace().join(".git/shallow");
    if shallow.symlink_metadata().is_ok() {
        return Err("the repository is shallow: a part of its history is missing".into());
    }
    let Some(commit) = resolve(&git, "HEAD").await? else { return Ok(None) };
    let parent = resolve(&git, CHAIN_REF).await?.filter(|tip| Some(tip.as_str()) == former);
    let state = read_state(&git, commit).await?;
    let mut parents = new_commits(&git, parent.as_deref()).await?;
    if let Some(parent) = &parent {
        let message = git.output(["log", "-1", "--format=%B", parent]).await?;
        if parents.is_empty() && WorkspaceState::parse(&message).as_ref() == Some(&state) {
            return Ok(None);
        }
    }
    parents.retain(|id| *id != state.commit);
    parents.insert(0, state.commit.clone());
    parents.splice(0..0, parent.clone());
    let mut args = vec!["commit-tree".to_owned(), "-m".to_owned(), state.to_message()];
    parents.into_iter().for_each(|id| args.extend(["-p".to_owned(), id]));
    args.push(format!("{}^{{tree}}", state.commit));
    let tip = git.output(args).await?;
    git.output(["update-ref", BUNDLE_REF, &tip]).await?;
    let base = parent.filter(|_| !complete);
    let mut args = vec!["bundle".to_owned(), "create".into(), "--quiet".into(), "-".into(), BUNDLE_REF.to_owned()];
    args.extend(base.as_ref().map(|base| format!("^{base}")));
    git.write_output(args, &out).await?;
    let bytes = out.metadata().map_err(|e| e.to_string())?.len();
    if bytes > MAX_BUNDLE_BYTES {
        return Err(format!("its bundle has {bytes} bytes, and the limit is {MAX_BUNDLE_BYTES}"));
    }
    Ok(Some(ChainBundle { base, tip, file: out }))
}

/// Records that the chain has this tip.
pub async fn set_known_tip(ctx: &ToolContext, tip: &str) -> GitResult<()> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    Git::new(ctx).await?.output(["update-ref", CHAIN_REF, tip]).await.map(drop)
}

/// Counts the files that differ from those of the known tip, or that it does not have; `None` if there is no such tip.
pub async fn count_newer_files(ctx: &ToolContext) -> GitResult<Option<u64>> {
    const SCRIPT: &str = "{ git \"$@\" diff --name-only --no-ext-diff --no-textconv --ignore-submodules=all \
         refs/chorus/workspace --; git \"$@\" ls-files --others --exclude-standard; } | wc -l";
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = Git::new(ctx).await?;
    if resolve(&git, CHAIN_REF).await?.is_none() {
        return Ok(None);
    }
    Ok(git.run_script(SCRIPT).await?.text.trim().parse().ok())
}

async fn read_state(git: &Git<'_>, commit: String) -> GitResult<WorkspaceState> {
    let head = git.run(["symbolic-ref", "--quiet", "HEAD"]).await?;
    let count = format!("--count={MAX_BRANCHES}");
    let format = "--format=%(objectname) %(refname)";
    let list = git.output(["for-each-ref", "--sort=-committerdate", &count, format, "refs/heads"]).await?;
    let branches = list.lines().filter_map(|line| line.split_once(' '));
    let branches = branches.map(|(commit, name)| (commit.to_owned(), name.to_owned())).collect();
    Ok(WorkspaceState { head: head.ok.then_some(head.text), commit, branches })
}

/// Returns the commits of branches and checkpoints that `parent` does not have, the newest first.
async fn new_commits(git: &Git<'_>, parent: Option<&str>) -> GitResult<Vec<String>> {
    let mut args = vec!["for-each-ref".to_owned(), "--sort=-committerdate".into(), "--format=%(objectname)".into()];
    args.push(format!("--count={MAX_NEW_COMMITS}"));
    args.extend(parent.map(|parent| format!("--no-merged={parent}")));
    args.extend(["refs/heads".to_owned(), "refs/chorus/checkpoints".into()]);
    let list = git.output(args).await?;
    let mut found = Vec::new();
    for id in list.lines().filter(|id| is_commit_id(id)) {
        if !found.iter().any(|known| known == id) {
            found.push(id.to_owned());
        }
    }
    Ok(found)
}

/// A bundle that was fetched from the chain.
#[derive(Debug)]
pub struct FetchedBundle {
    pub tip: String,
    /// The file, in a directory that has nothing but such files.
    pub path: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_parsed_back_and_strange_lines_are_left_out() {
        let id = "0123456789abcdef0123456789abcdef01234567".to_owned();
        for head in [None, Some("refs/heads/main".to_owned())] {
            let branches = vec![(id.clone(), "refs/heads/main".to_owned())];
            let state = WorkspaceState { head, commit: id.clone(), branches };
            let message = state.to_message();
            assert_eq!(WorkspaceState::parse(&message), Some(state.clone()));
            let strange = format!("{message}branch {id} refs/tags/x\nbranch --x refs/heads/y\nhead refs/other\n");
            assert_eq!(WorkspaceState::parse(&strange), Some(state));
        }
        assert_eq!(WorkspaceState::parse("head detached\ncommit --upload-pack=x"), None);
    }
}
