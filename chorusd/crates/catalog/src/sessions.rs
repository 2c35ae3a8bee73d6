//! The table of sessions.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::Arc;

use chorus_proto::SessionHeader;
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    CatalogRead, CatalogWrite, DeletedSession, ImportedUsage, LineageRow, NewSession, ProjectFilter, SessionChanges,
    SessionName, SessionQuery, SessionRow, SessionStamp, ShortId, UnusedSession,
};

/// Limit of the sessions that are listed if several match a name, a prefix, a slug or words of a title.
pub const MAX_MATCHES: usize = 20;

/// Limit of the sessions of one conversation of another program that are listed.
pub const MAX_REVISIONS: usize = 16;

/// Number of sessions after a time that are searched for the one that contains it.
pub const MAX_SESSIONS_SEARCHED: usize = 20;

/// The table of sessions, which indexes their files. Lists are in the order of [`SessionQuery`] if they say newest first.
pub trait SessionTable: Debug + Send + Sync {
    /// Inserts a session; replaces the row with its id, agent and name, if a scan has found the file first. Returns its
    /// short id.
    ///
    /// # Errors
    /// [`SessionRow::name_taken_error`] if another session has its id, or its name within the agent.
    fn insert(&self, new: NewSession) -> CatalogWrite<String>;

    /// Inserts a session whose file was found; replaces the rows with its id or with its name within the agent. Does
    /// nothing if there is a row for this very file: a save has inserted it, and replacing it would lose the summary that
    /// is requested with it.
    fn upsert(&self, row: SessionRow) -> CatalogWrite<()>;

    /// Deletes the row that [`SessionTable::insert`] inserted for this session, with its usage, but no other session's row
    /// with the same id.
    fn undo_insert(&self, session: SessionHeader) -> CatalogWrite<()>;

    /// Updates header, stamp and corruption of a session's row; its place in the order stays.
    fn update(&self, row: SessionRow) -> CatalogWrite<()>;

    /// As [`SessionTable::update`], for a session that has grown: also updates the hash and the place, and replaces the
    /// usage, if that is given.
    fn replace(&self, row: SessionRow, usage: Option<Arc<ImportedUsage>>) -> CatalogWrite<()>;

    /// Gives a session to the agent that its new row names, with its usage. All columns of the row are replaced.
    fn move_to_agent(&self, row: SessionRow) -> CatalogWrite<()>;

    /// Sets the time at which a session was used last.
    fn touch(&self, id: Uuid, at: Timestamp) -> CatalogWrite<()>;

    /// Deletes a session's row. Its usage stays, in case the session comes back.
    fn delete(&self, id: Uuid) -> CatalogWrite<()>;

    /// Permanently deletes a session's row with its usage. A database whose files are ours records that nothing of it may be
    /// left in them.
    fn purge(&self, id: Uuid) -> CatalogWrite<()>;

    /// Returns the session with this id.
    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<SessionRow>>;

    /// Returns the sessions with these ids, as far as they exist.
    fn get_all(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<SessionRow>>;

    /// Returns a page of sessions, and the total number that match.
    fn list(&self, listing: SessionQuery) -> CatalogRead<'_, (Vec<SessionRow>, u64)>;

    /// As [`SessionTable::list`], with the short id of each session, of the same state of the table.
    fn list_with_short_ids(&self, listing: SessionQuery) -> CatalogRead<'_, (Vec<SessionRow>, Vec<ShortId>, u64)>;

    /// Returns the session at the offset of a query, without counting those that match. The query has no `since` and no
    /// `words`.
    fn nth(&self, listing: SessionQuery) -> CatalogRead<'_, Option<SessionRow>>;

    /// Returns the `n`th newest session of a conversation, counted from 0.
    fn nth_newest(&self, conversation: ConversationKey, n: u64) -> CatalogRead<'_, Option<SessionRow>>;

    /// Returns the newest session of a conversation, and its agent's session names as [`SessionTable::names_with_base`]:
    /// a save needs both.
    fn newest_and_names(
        &self,
        conversation: ConversationKey,
        base: String,
    ) -> CatalogRead<'_, (Option<SessionRow>, Vec<String>)>;

    /// Returns the newest session of each agent, in the order of `agents`.
    fn newest_of_each(&self, agents: Vec<Uuid>) -> CatalogRead<'_, Vec<Option<SessionRow>>>;

    /// Returns the newest session of each conversation, in the order of `conversations`.
    fn newest_of_conversations(&self, conversations: Vec<ConversationKey>) -> CatalogRead<'_, Vec<Option<SessionRow>>>;

    /// Returns the ids of the conversations, other than `main`, under whose name `name` the agent has sessions.
    fn conversations_named(&self, agent: Uuid, name: String) -> CatalogRead<'_, Vec<Uuid>>;

    /// Returns the agent's session names that are `base` or begin with `base-`.
    fn names_with_base(&self, agent: Uuid, base: String) -> CatalogRead<'_, Vec<String>>;

    /// Returns the sessions with exactly this name, of `agent` or of all agents, newest first, at most [`MAX_MATCHES`].
    fn list_named(&self, agent: Option<Uuid>, session_id: String) -> CatalogRead<'_, Vec<SessionRow>>;

    /// Returns the sessions whose session_id or UUID begins with `prefix`, of `agent` or of all agents, newest first,
    /// at most [`MAX_MATCHES`].
    fn list_with_prefix(&self, agent: Option<Uuid>, prefix: String) -> CatalogRead<'_, Vec<SessionRow>>;

    /// Returns the sessions of `agents` whose slug, the session_id without its date, begins with `slug`, newest first, at
    /// most [`MAX_MATCHES`]; of these only those with exactly this slug, if there are any. The number that made a name
    /// unique does not count.
    fn list_with_slug(&self, agents: Vec<Uuid>, slug: String) -> CatalogRead<'_, Vec<SessionRow>>;

    /// Returns the sessions of `agents` with these words in their title, in any case, newest first, at most
    /// [`MAX_MATCHES`]; of these only those with exactly this title, if there are any. The words are not part of longer
    /// words.
    fn list_with_title_words(&self, agents: Vec<Uuid>, words: String) -> CatalogRead<'_, Vec<SessionRow>>;

    /// Returns the shortest prefix of each id that no other id shares: 8 hex digits, or more if ids are similar; hyphens
    /// are not counted. The ids need not exist.
    fn short_ids(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<String>>;

    /// Lists all sessions of these agents.
    fn lineage(&self, agents: Vec<Uuid>) -> CatalogRead<'_, Vec<LineageRow>>;

    /// Returns the names of those of these sessions that exist, of the same state of the table.
    fn names(&self, ids: Vec<Uuid>) -> CatalogRead<'_, HashMap<Uuid, SessionName>>;

    /// Returns, for each agent and time, the name of the first session that was saved afterwards and contains that
    /// time: [`SessionName::if_contains`]. Looks at [`MAX_SESSIONS_SEARCHED`] sessions.
    fn names_at(&self, moments: Vec<(Uuid, Timestamp)>) -> CatalogRead<'_, Vec<Option<String>>>;

    /// Returns the sessions that hold a conversation of another program, the newest revision first, at most
    /// [`MAX_REVISIONS`].
    fn list_of_source(&self, program: String, conversation: String) -> CatalogRead<'_, Vec<SessionRow>>;

    /// Returns the sessions without a source that an import has saved and whose conversation began at this time, the newest
    /// row first, at most [`MAX_REVISIONS`].
    fn list_without_source(&self, started_at: Timestamp) -> CatalogRead<'_, Vec<SessionRow>>;

    /// Returns the sessions without a source that an import has saved under a name with this slug, with or without a
    /// number that made it unique, the newest row first, at most [`MAX_REVISIONS`].
    fn list_without_source_by_slug(&self, slug: String) -> CatalogRead<'_, Vec<SessionRow>>;

    /// Returns the names of all programs whose conversations sessions hold, in order.
    fn source_programs(&self) -> CatalogRead<'_, Vec<String>>;

    /// Returns the identities of the conversations that the sessions of an agent hold: the program and the id there, which
    /// for its own sessions are `chorus` and the session's id.
    fn identities_of_agent(&self, agent: Uuid) -> CatalogRead<'_, Vec<(String, String)>>;

    /// Counts the conversations of each program that active agents hold, and their messages: those of the newest revision.
    fn count_by_program(&self) -> CatalogRead<'_, HashMap<String, (u64, u64)>>;

    /// Returns the ids of the sessions of other programs' conversations that active agents hold.
    fn ids_with_source(&self) -> CatalogRead<'_, HashSet<Uuid>>;

    /// Returns the ids of all sessions of a project.
    fn ids_of_project(&self, project: ProjectFilter) -> CatalogRead<'_, Vec<Uuid>>;

    /// Returns the ids of an agent's sessions.
    fn ids_of_agent(&self, agent: Uuid) -> CatalogRead<'_, Vec<Uuid>>;

    /// Returns the name and file stamp of every session of an agent.
    fn file_stamps(&self, agent: Uuid) -> CatalogRead<'_, Vec<(String, String)>>;

    /// Returns those of these keys, up to 1,000, that name the body of a session. Sees every row that was committed before
    /// the call.
    fn named_bodies(&self, keys: Vec<String>) -> CatalogRead<'_, HashSet<String>>;

    /// Returns up to `limit` keys of bodies of all agents' sessions, those after `after`, in the order of their bytes.
    fn body_keys(&self, after: Option<String>, limit: u64) -> CatalogRead<'_, Vec<String>>;

    /// Lists the sessions of all agents that were deleted since then. A database that one process uses records none: no copies of their files
    /// are elsewhere.
    fn deleted_since(&self, since: Timestamp) -> CatalogRead<'_, Vec<DeletedSession>>;

    /// Lists the names of the agent's sessions whose files cannot be read.
    fn corrupt_names(&self, agent: Uuid) -> CatalogRead<'_, Vec<String>>;

    /// Returns a page of all sessions behind the position `after`, by position; in a cluster, of those whose agents this
    /// process owns.
    fn stamps_after(&self, after: i64, limit: u64) -> CatalogRead<'_, Vec<SessionStamp>>;

    /// Returns what the search index has to look at.
    fn changes(&self) -> Arc<SessionChanges>;

    /// Waits until the changes that were taken so far are committed, or undone.
    fn commit_changes(&self) -> CatalogWrite<()>;

    /// Lists the sessions that nobody has used since `before`, in no particular order. Uses that were reported by
    /// [`SessionTable::touch`] count although nobody waited for it.
    fn list_unused_since(&self, before: Timestamp) -> CatalogRead<'_, Vec<UnusedSession>>;

    /// Returns the session if it exists and nobody has used it since `before`, every earlier call of
    /// [`SessionTable::touch`] included.
    fn get_unused_since(&self, id: Uuid, before: Timestamp) -> CatalogWrite<Option<SessionRow>>;
}
