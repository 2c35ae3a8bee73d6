//! git in the workspace. What the workspace says of how git works (`.git/config`, attributes, hooks) never names a program that runs:
//! each setting that could is overridden, and where that cannot be, git is not run.

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
mod remote;
mod run;

pub use branch::GitBranch;
pub use checkout::GitCheckout;
pub use commit::GitCommit;
pub use diff::GitDiff;
pub use init::GitInit;
pub use log::GitLog;
pub use merge_request::GitMergeRequest;
pub use push::GitPush;
pub use run::{settings, variables};

use std::path::PathBuf;

use super::ToolContext;

/// Why a call did not come to its end, for the model.
type GitResult<T> = Result<T, String>;

/// The repository of the workspace: a directory of its own, not a link and not the name of another.
fn repository_dir(scene: &ToolContext) -> GitResult<PathBuf> {
    let dir = scene.workspace().join(".git");
    match dir.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(dir),
        Ok(_) => Err("the .git of the workspace is no directory of its own; git tools do not follow it".into()),
        Err(_) => Err("the workspace is no git repository; git_init makes it one".into()),
    }
}
