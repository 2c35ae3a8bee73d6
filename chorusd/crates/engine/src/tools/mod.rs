//! Tools that a model may call. Errors are returned to the model as results; only failures after which the daemon
//! cannot go on end the turn.

mod approval_question;
mod bash;
mod context;
mod error_result;
mod execute;
mod files;
mod git;
mod host;
mod list_agents;
mod list_models;
mod mcp;
mod registry;
mod remember;
mod result_message;
mod schedules;
mod search_sessions;
mod self_edit;
mod send_to_agent;
mod tool;
pub mod unsandboxed_approval;
mod working_directory;

pub use context::{PausableTurn, ToolContext, ToolServices};
use error_result::error_outcome;
pub use execute::{execute_call, needs_approval, runs_in_order, uses_workspace};
pub use files::{
    CommandGuard, ConversationNames, Edit as FileEdit, FileLocks, FileVersions, LineRange, OpenEntry, Workspace,
    WorkspacePath, normalize_file_action, workspace_paths,
};
pub use git::{
    checkpoint, settings as git_settings, variables as git_variables, workspace_chain, workspace_restore, worktree,
};
pub use host::{ScheduleRequest, SelfEdit, SessionQuestion, ToolCaller, ToolHost};
pub use mcp::McpTools;
pub use registry::{OfferedTools, offer_tools, visible_specs};
pub use result_message::tool_result_message;
pub(crate) use search_sessions::search_action;
pub use tool::ToolOutcome;
pub use working_directory::WorkingDirectory;
