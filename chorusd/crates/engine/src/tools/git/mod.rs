//! Runs git in the workspace. The workspace's configuration (`.git/config`, attributes, hooks) can never name a program
//! that runs: each such setting is overridden, and if one cannot be, git is not run.

mod branch;
mod checkout;
pub mod checkpoint;
mod commit;
mod diff;
mod host_command;
mod ignored_conflicts;
mod init;
mod log;
mod merge_request;
mod network_policy;
mod push;
mod ref_names;
mod remote_address;
mod run;

use std::path::PathBuf;

use super::ToolContext;
pub(super) use branch::GitBranch;
pub(super) use checkout::GitCheckout;
pub(super) use commit::GitCommit;
pub(super) use diff::GitDiff;
pub(super) use init::GitInit;
pub(super) use log::GitLog;
pub(super) use merge_request::GitMergeRequest;
pub(super) use push::GitPush;
pub use run::{settings, variables};

/// A result whose error is the reason for the model.
type GitResult<T> = Result<T, String>;

/// Returns the workspace's `.git`, which must be a real directory, not a link or a file that refers to another
/// repository.
fn repository_dir(ctx: &ToolContext) -> GitResult<PathBuf> {
    let dir = ctx.workspace().join(".git");
    match dir.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(dir),
        Ok(_) => Err("the .git of the workspace is not a directory; git tools do not follow it".into()),
        Err(_) => Err("the workspace is not a git repository; initialize it with git_init".into()),
    }
}
