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
mod repository;
mod run;
pub mod workspace_chain;
pub mod workspace_restore;
pub mod worktree;

pub(super) use branch::GitBranch;
pub(super) use checkout::GitCheckout;
pub(super) use commit::GitCommit;
pub(super) use diff::GitDiff;
pub(super) use init::GitInit;
pub(super) use log::GitLog;
pub(super) use merge_request::GitMergeRequest;
pub(super) use push::GitPush;
use repository::repository_dirs;
pub use run::{settings, variables};

/// A result whose error is the reason for the model.
type GitResult<T> = Result<T, String>;
