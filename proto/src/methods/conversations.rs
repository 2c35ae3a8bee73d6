//! `conversations.*`: the conversations that an agent has at once. Each has its own context, window and turns.

use jiff::Timestamp;
use uuid::Uuid;

use super::{method, wire};
use crate::agent::{ContextInfo, RunningTurn, SessionRef};
use crate::session::Session;

method!(
    /// Lists an agent's conversations: `main` first, then the others by name.
    List = "conversations.list", ListParams => ListResult
);
method!(
    /// Creates a conversation. It has no context until the first message.
    New = "conversations.new", NewParams => NewResult
);
method!(
    /// Gives a conversation another name. Sessions keep the name that it had when they were saved.
    Rename = "conversations.rename", RenameParams => RenameResult
);
method!(
    /// Saves what is unsaved, clears the context and closes the conversation. A message opens it again.
    Close = "conversations.close", CloseParams => CloseResult
);
method!(
    /// Merges the branch of a conversation's git worktree into the branch of the agent's workspace. What is not committed in
    /// the worktree is committed first. A merge with conflicts changes nothing.
    Merge = "conversations.merge", MergeParams => MergeResult
);
method!(
    /// Selects the conversation that requests mean by `@`.
    Use = "conversations.use", UseParams => UseResult
);

method!(
    /// Follows a conversation: sends what happens in it as `progress` notifications, as `send` does with `stream`, until the
    /// client disconnects. There is no answer before that.
    Attach = "context.attach", AttachParams => AttachResult
);

/// A conversation of an agent.
#[wire(PartialEq, Eq)]
pub struct Conversation {
    /// The id of `main` is that of its agent.
    pub id: Uuid,
    /// `main`, or the name that is unique within the agent.
    pub name: String,
    /// The title that it was given, or that of its newest session.
    #[omit_empty]
    pub title: Option<String>,
    /// What made it, for example `discord:` and the id of a thread; null if somebody named it.
    #[omit_empty]
    pub origin: Option<String>,
    pub created_at: Timestamp,
    /// Null while it is open.
    #[omit_empty]
    pub closed_at: Option<Timestamp>,
    /// Whether requests mean it by `@`.
    pub selected: bool,
    /// Its live context; null if it is idle.
    pub context: Option<ContextInfo>,
    /// The running turn.
    #[omit_empty]
    pub turn: Option<RunningTurn>,
    /// Its newest session.
    pub last_session: Option<SessionRef>,
    /// Who has it open in a chat.
    #[omit_empty]
    pub attached: Vec<Attached>,
    /// Its git worktree, if the agent's `workspace` is `worktree`; null if it works in the agent's workspace.
    #[omit_empty]
    pub worktree: Option<ConversationWorktree>,
}

/// The git worktree of a conversation.
#[wire(PartialEq, Eq)]
pub struct ConversationWorktree {
    pub branch: String,
    /// Its absolute path; null if it does not exist, because the conversation was closed or has not worked in it yet.
    #[omit_empty]
    pub directory: Option<String>,
}

/// A client that has a conversation open.
#[wire(PartialEq, Eq)]
pub struct Attached {
    /// What the client calls itself, for example `pts/3`.
    pub client: String,
    pub since: Timestamp,
}

#[wire(params)]
pub struct AttachParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// What the client calls itself in `status`, for example `pts/3`; at most 100 characters.
    pub client: Option<String>,
    /// The end of what the client has heard already: what was added since comes first, as messages.
    pub after: Option<ContextPosition>,
}

/// A place in the live context of a conversation.
#[wire(Copy, PartialEq, Eq)]
pub struct ContextPosition {
    /// Number of the context; 0 if there was none.
    pub context: u64,
    /// Number of the messages before the place.
    pub messages: u64,
}

#[wire(PartialEq, Eq)]
pub struct AttachResult {
    /// The agent has moved to another node of the cluster: go on there, after this place.
    #[omit_empty]
    pub moved: Option<ContextPosition>,
}

#[wire(params)]
pub struct ListParams {
    pub agent: Option<String>,
    /// Include closed ones.
    pub all: bool,
    /// Index of the first conversation: the `next` of the previous page.
    pub offset: Option<u64>,
    /// Maximum number of conversations, by default and at most 1,000.
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ListResult {
    pub agent_name: String,
    pub conversations: Vec<Conversation>,
    pub total: u64,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct NewParams {
    pub agent: Option<String>,
    /// By the rules for names of agents; `main` is taken.
    pub name: String,
    /// By default the title of its newest session.
    pub title: Option<String>,
    /// What it is made for, unique within the agent, for clients that find it by that: if the agent has a conversation of
    /// this origin, that one is returned, and if the name is taken, a number is added to it.
    pub origin: Option<String>,
}

#[wire(PartialEq, Eq)]
pub struct NewResult {
    pub conversation: Conversation,
    /// False if a conversation with this origin exists, or a closed one with this name was opened again.
    pub created: bool,
}

#[wire(params)]
pub struct RenameParams {
    pub agent: Option<String>,
    /// Its name or id, or `@` for the selected one; `main` keeps its name.
    pub conversation: String,
    pub name: String,
}

#[wire(PartialEq, Eq)]
pub struct RenameResult {
    pub conversation: Conversation,
    pub old_name: String,
}

#[wire(params)]
pub struct CloseParams {
    pub agent: Option<String>,
    /// Its name or id, or `@` for the selected one; `main` cannot be closed.
    pub conversation: String,
}

#[wire(PartialEq)]
pub struct CloseResult {
    pub conversation: Conversation,
    /// The session that holds its last context; null if there was none.
    pub saved: Option<Session>,
    /// The result for its git worktree; null if it had none.
    #[omit_empty]
    pub worktree: Option<ClosedWorktree>,
}

/// The git worktree of a conversation that was closed.
#[wire(PartialEq, Eq)]
pub struct ClosedWorktree {
    pub branch: String,
    /// The absolute path that it had, or still has.
    pub directory: String,
    /// True if changes that were not committed are in a commit of its branch now.
    pub committed: bool,
    /// Commits of its branch that the branch of the workspace does not have. The branch stays.
    pub unmerged_commits: u64,
    /// True if its branch was deleted, because everything in it is merged.
    pub branch_deleted: bool,
    /// The reason why the directory stays as it was; null if it was removed.
    #[omit_empty]
    pub kept: Option<String>,
}

#[wire(params)]
pub struct MergeParams {
    pub agent: Option<String>,
    /// Its name or id, or `@` for the selected one; `main` works in the workspace itself.
    pub conversation: String,
}

#[wire(PartialEq, Eq)]
pub struct MergeResult {
    pub conversation: Conversation,
    /// The branch that was merged.
    pub branch: String,
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
    /// True if changes in the worktree were committed first.
    pub committed: bool,
}

#[wire(params)]
pub struct UseParams {
    pub agent: Option<String>,
    /// Its name or id.
    pub conversation: String,
}

#[wire(PartialEq, Eq)]
pub struct UseResult {
    pub agent_name: String,
    pub conversation: Conversation,
}
