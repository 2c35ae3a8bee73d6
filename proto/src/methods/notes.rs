//! `notes.*`: what is known in a conversation, and the facts that an agent and its project know in every one.

use super::session_branching::Side;
use super::{method, wire};
use crate::working_set::ItemSource;

method!(
    /// Lists the decisions, open tasks, files and conflicts of the live context, and the facts of all three scopes.
    List = "notes.list", ListParams => ListResult
);
method!(
    /// Adds a note by hand, unless there is one that says the same.
    Add = "notes.add", AddParams => AddResult
);
method!(
    /// Changes the text of a note, which counts as added by hand from then on.
    Edit = "notes.edit", EditParams => NoteResult
);
method!(
    /// Removes an open task that is done.
    Done = "notes.done", DoneParams => NoteResult
);
method!(
    /// Removes a note. Rules and models do not find it again.
    Rm = "notes.rm", RmParams => RmResult
);
method!(
    /// Settles a conflict: one side stays, what says otherwise is removed.
    Resolve = "notes.resolve", ResolveParams => ResolveResult
);

/// What a note says.
#[wire(Copy, PartialEq, Eq)]
pub enum NoteKind {
    Fact,
    Decision,
    Task,
    File,
    Conflict,
}

/// Where a note is known.
#[wire(Copy, Default, PartialEq, Eq)]
pub enum NoteScope {
    /// In this conversation, and in those that continue from it.
    #[default]
    Here,
    /// In every conversation of the agent: an entry of its memory.
    Agent,
    /// In every conversation of all agents of its project.
    Project,
}

/// How much of a note the model is shown.
#[wire(Copy, PartialEq, Eq)]
pub enum NoteView {
    Full,
    Shortened,
    LeftOut,
}

/// A note.
#[wire(PartialEq, Eq)]
pub struct Note {
    /// The name for other methods: a letter and a number (`d3`), or the short id of a memory entry. The numbers of the
    /// notes behind one that is removed change.
    pub note: String,
    pub kind: NoteKind,
    pub scope: NoteScope,
    /// Does not change.
    pub id: String,
    pub text: String,
    /// `hand`: a person wrote it.
    pub source: ItemSource,
    /// The message that it was taken from.
    pub message_id: Option<String>,
    pub shown: NoteView,
    /// The file in the workspace that a memory entry is about.
    #[omit_empty]
    pub path: Option<String>,
    /// The project whose agents share a memory entry.
    #[omit_empty]
    pub project: Option<String>,
}

#[wire(params)]
pub struct ListParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// Only notes of this kind.
    pub kind: Option<NoteKind>,
    /// Only notes of this scope.
    pub scope: Option<NoteScope>,
    /// How many to leave out at the start.
    pub offset: Option<u64>,
    /// Most notes in the page; fewer come if a frame would get too long.
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ListResult {
    pub agent_name: String,
    /// What the conversation continues from.
    pub background: Option<String>,
    /// Of the messages that left the window.
    pub summary: Option<String>,
    pub notes: Vec<Note>,
    /// All that there are.
    pub total: u64,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct AddParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// `fact` unless given. Conflicts cannot be added.
    pub kind: Option<NoteKind>,
    pub text: String,
    /// Of a fact; `here` unless given.
    pub scope: Option<NoteScope>,
    /// A file in the workspace that a fact of the scope `agent` or `project` is about.
    pub path: Option<String>,
    /// Replace secrets; else they are kept and counted.
    pub redact: bool,
}

#[wire(PartialEq, Eq)]
pub struct AddResult {
    /// What was added, or what says the same already.
    pub note: Note,
    pub added: bool,
    /// Secrets seen in what was given.
    pub secrets_found: u64,
    /// What a person should know, for example that the model is not shown all notes.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct EditParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// A letter and a number, an id, or a unique prefix of one.
    pub note: String,
    pub text: String,
}

#[wire(PartialEq, Eq)]
pub struct NoteResult {
    /// As it is now, or was before it was removed.
    pub note: Note,
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DoneParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// The open task: its number, with or without the letter `t`, or its id.
    pub note: String,
}

#[wire(params)]
pub struct RmParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    pub note: String,
}

#[wire(PartialEq, Eq)]
pub struct RmResult {
    /// As it was.
    pub note: Note,
    /// The entry of the trash that a memory entry is now.
    #[omit_empty]
    pub trash: Option<String>,
}

#[wire(params)]
pub struct ResolveParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// The conflict: its number, with or without the letter `c`, or its id.
    pub note: String,
    /// The side that holds: `a`, which is named first, or `b`.
    pub keep: Option<Side>,
}

#[wire(PartialEq, Eq)]
pub struct ResolveResult {
    /// The conflict as it was.
    pub note: Note,
    /// The statement that holds.
    pub kept: String,
    /// The notes that said otherwise, as they were.
    pub removed: Vec<Note>,
}
