//! Finds the saved sessions that requests name, and reads them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::{SessionQuery, SessionRow, SessionTable, ShortId};
use chorus_proto::{ErrorKind, Session, SessionHeader, Trigger};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_session::selector::{MIN_PREFIX, MIN_WORD};
use chorus_session::{Selector, SessionFile};
use chorus_store::index_cache::IndexedFile;
use chorus_store::unverified_session::UnverifiedSession;
use chorus_store::{Store, session_files, session_form};
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::get::corrupt_error;
use super::missing_session::{not_saved_error, unknown_session_error};
use crate::agent::agent_index::AgentEntry;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::{self, ConversationTarget, SessionScope};
use crate::ops::history_numbers::HistoryNumbers;

/// Finds and reads the saved sessions of this home.
#[derive(Debug)]
pub struct SessionReader {
    pub table: Arc<dyn SessionTable>,
    pub agents: Arc<AgentResolver>,
    pub store: Arc<Store>,
    pub registry: Arc<Registry>,
    /// The numbers of the sessions that requesters were shown last.
    pub history_numbers: HistoryNumbers,
    pub home: PathBuf,
}

impl SessionReader {
    /// Returns the session that `text` selects for `agent`. A session of another agent is found by its name or UUID, and
    /// may be used only if the caller named the agent (`agent_said`), so that nothing is mixed up by mistake. `command` is
    /// what the hint of that error proposes: the words of `chorusctl`, with `NAME` for the session.
    ///
    /// # Errors
    /// `session_not_found`, `ambiguous` with the candidates, `denied` for a session of another agent.
    pub async fn resolve(
        &self,
        target: &ConversationTarget,
        agent_said: bool,
        text: &str,
        command: &str,
    ) -> Result<SessionRow> {
        self.resolve_as(&Requester::Owner, target, agent_said, text, command).await
    }

    /// Like [`SessionReader::resolve`], on behalf of `by`: numbers refer to the history that `by` was shown. Members in
    /// channels find only sessions of the agent itself, and none of private conversations other than `target`; for others the
    /// error does not reveal whether they exist.
    pub async fn resolve_as(
        &self,
        by: &Requester,
        target: &ConversationTarget,
        agent_said: bool,
        text: &str,
        command: &str,
    ) -> Result<SessionRow> {
        let row = self.find_as(by, target, !agent_said, text).await?;
        if agent_said || self.is_found_with(&target.agent, &row) {
            return Ok(row);
        }
        let SessionHeader { session_id, agent_name, .. } = &row.header;
        let command = command.replace("NAME", session_id);
        Err(Error::new(ErrorKind::Denied, format!("session {session_id} belongs to agent {agent_name}"))
            .hint(format!("name the agent: chorusctl --agent {agent_name} {command}")))
    }

    /// Like [`SessionReader::resolve_as`], for requests that only read the session: a number of the list that the owner was
    /// shown last selects what is on the screen, of whatever agent.
    pub async fn resolve_to_read(
        &self,
        by: &Requester,
        target: &ConversationTarget,
        agent_said: bool,
        text: &str,
        command: &str,
    ) -> Result<SessionRow> {
        let is_listed = match Selector::parse(text) {
            Selector::Number(number, _) => self.history_numbers.find(by, target.key.agent, number).is_some(),
            _ => false,
        };
        self.resolve_as(by, target, agent_said || is_listed, text, command).await
    }

    /// Returns the agent and conversation of a request that only reads the session `text`. If no agent is named and none is implied,
    /// it is the agent of the session, which its ID or name tells if no other has it.
    ///
    /// # Errors
    /// `agent_not_found`, `conversation_not_found`, `no_agent`.
    pub async fn target_to_read(
        &self,
        agent: Option<&str>,
        conversation: Option<&str>,
        text: &str,
    ) -> Result<ConversationTarget> {
        let error = match self.agents.conversation_for_sessions(agent, conversation).await {
            Err(error) if error.kind == ErrorKind::NoAgent => error,
            resolved => return resolved,
        };
        let Some(row) = self.find_of_any_agent(text).await? else {
            return Err(self.trashed_session_error(text).await.unwrap_or(error));
        };
        let owner = self.agents.resolve_by_id(row.header.agent_id).await.map_err(|_| error)?;
        let key = ConversationKey::main(owner.settings.id);
        Ok(ConversationTarget::new(owner, key))
    }

    /// Returns the only session of any agent with this ID or name, or whose ID or name begins so.
    async fn find_of_any_agent(&self, text: &str) -> Result<Option<SessionRow>> {
        let text = match Selector::parse(text) {
            Selector::Id(id) => return self.table.get(id).await,
            Selector::Text(text) => text,
            // A number of the history otherwise.
            Selector::Number(_, digits) if digits.len() >= MIN_PREFIX => digits,
            _ => return Ok(None),
        };
        let mut found = self.table.list_named(None, text.clone()).await?;
        if found.is_empty() && text.chars().count() >= MIN_PREFIX {
            found = self.table.list_with_prefix(None, text).await?;
        }
        Ok(if found.len() == 1 { found.pop() } else { None })
    }

    /// Returns true for a session of `agent`, and for an imported one, which all agents find.
    fn is_found_with(&self, agent: &AgentEntry, row: &SessionRow) -> bool {
        let (own, of) = (agent.settings.id, row.header.agent_id);
        of == own || self.imported_by_others(Some(own)).contains(&of)
    }

    /// Like [`SessionReader::resolve_as`], for requests that copy nothing from the session and may name one of any agent.
    /// With `imported`, `latest` and the like mean the imported sessions as well as those of the agent.
    pub async fn find_as(
        &self,
        by: &Requester,
        target: &ConversationTarget,
        imported: bool,
        text: &str,
    ) -> Result<SessionRow> {
        let (agent, own) = (&target.agent, target.key.agent);
        let owner = *by == Requester::Owner;
        let scope = if owner { SessionScope::default() } else { self.scope(target) };
        let row = match Selector::parse(text) {
            Selector::Live => self.saved_live(target.key, agent).await?,
            Selector::LiveOf(name) => {
                let conversation = self.find_live(by, target, &name)?;
                self.saved_live(conversation, agent).await?
            }
            Selector::Previous => self.previous(target.key, owner && imported).await?,
            Selector::Tag(tag) => {
                let agents = self.searched_agents(own, owner && imported);
                let query = SessionQuery {
                    agent: Some(own),
                    also: agents.into_iter().filter(|agent| *agent != own).collect(),
                    tag: Some(tag.clone()),
                    limit: MAX_CANDIDATES,
                    ..SessionQuery::default()
                };
                let (mut tagged, _) = self.table.list(query).await?;
                tagged.retain(|row| scope.contains_session(&row.header));
                match tagged.is_empty() {
                    true => None,
                    false => self.ensure_unique(&format!("tag:{tag}"), tagged).await?,
                }
            }
            Selector::Latest(n) => self.nth_newest(target.key, owner && imported, n).await?,
            Selector::Id(id) => self.table.get(id).await?,
            Selector::Number(number, digits) => match self.history_numbers.find(by, own, number) {
                Some(id) => self.table.get(id).await?,
                None if digits.len() >= MIN_PREFIX => self.find_by_text(own, owner, &scope, &digits).await?,
                None => {
                    return Err(Error::new(
                        ErrorKind::SessionNotFound,
                        format!("no session number {digits} in the history you listed last"),
                    )
                    .hint("run `chorusctl history` again, or use the session's name"));
                }
            },
            Selector::Text(text) => match self.find_by_text(own, owner, &scope, &text).await? {
                Some(row) => Some(row),
                None => self.find_by_words(self.searched_agents(own, owner && imported), &scope, &text).await?,
            },
        };
        let is_offered = |row: &SessionRow| owner || row.header.agent_id == own && scope.contains_session(&row.header);
        match row.filter(is_offered) {
            Some(row) => Ok(row),
            None if owner => Err(self.missing_session_error(agent, text, imported).await),
            None => Err(unknown_session_error(&agent.settings.name, text)),
        }
    }

    /// Returns the conversation that `@name` means. Others than the owner do not learn of one that is not offered to them, nor of
    /// names that are like this one.
    ///
    /// # Errors
    /// `conversation_not_found` for the owner, `session_not_found` for others.
    pub(super) fn find_live(&self, by: &Requester, target: &ConversationTarget, name: &str) -> Result<ConversationKey> {
        let found = conversations::find(&self.agents.index, &target.agent, Some(name));
        if *by == Requester::Owner {
            return found;
        }
        let offered = found.ok().filter(|key| self.scope(target).contains(*key));
        offered.ok_or_else(|| unknown_session_error(&target.agent.settings.name, &format!("@{name}")))
    }

    /// Returns what is offered in a conversation to people in channels.
    #[must_use]
    pub fn scope(&self, target: &ConversationTarget) -> SessionScope {
        SessionScope::of(&self.agents.index.conversations, target.key)
    }

    /// Returns the warning that other agents have sessions with the name `text`, by which `row` was found.
    pub async fn same_name_warning(&self, row: &SessionRow, text: &str) -> Result<Option<String>> {
        if row.header.session_id != text {
            return Ok(None);
        }
        let mut rows = self.table.list_named(None, text.to_owned()).await?;
        rows.retain(|other| other.header.id != row.header.id);
        rows.truncate(LISTED_CANDIDATES);
        let ids = self.table.short_ids(rows.iter().map(|row| row.header.id).collect()).await?;
        let others: Vec<String> =
            ids.iter().zip(&rows).map(|(id, other)| format!("{} ({id})", other.header.agent_name)).collect();
        let shown = &row.header.agent_name;
        Ok((!others.is_empty())
            .then(|| format!("this is the session of {shown}; others have this name, too: {}", others.join(", "))))
    }

    /// Returns the agents that hold imported conversations, except `agent`. Empty if that is `None`: all agents are meant.
    #[must_use]
    pub fn imported_by_others(&self, agent: Option<Uuid>) -> Vec<Uuid> {
        let Some(agent) = agent else { return Vec::new() };
        let ids = self.agents.index.import_agents().into_iter().map(|entry| entry.settings.id);
        ids.filter(|id| *id != agent).collect()
    }

    /// Returns the session that holds the live context of a conversation, or that it was restored from.
    async fn saved_live(&self, conversation: ConversationKey, agent: &AgentEntry) -> Result<Option<SessionRow>> {
        match self.registry.live_session(conversation) {
            Some(id) => self.table.get(id).await,
            None => {
                let name = self.agents.index.conversations.name(conversation);
                let failure = not_saved_error(&agent.settings.name, name.as_deref());
                Err(self.agents.index.name_in_hint(conversation, failure))
            }
        }
    }

    /// Returns the `n`th newest session of a conversation, counted from 0, and with `imported` of the imported ones, too.
    async fn nth_newest(&self, conversation: ConversationKey, imported: bool, n: u64) -> Result<Option<SessionRow>> {
        let agent = conversation.agent;
        let also = if imported { self.imported_by_others(Some(agent)) } else { Vec::new() };
        if also.is_empty() {
            return self.table.nth_newest(conversation, n).await;
        }
        let query = SessionQuery {
            agent: Some(agent),
            also,
            conversation: Some(conversation),
            offset: n,
            ..SessionQuery::default()
        };
        self.table.nth(query).await
    }

    /// Returns the agents whose sessions are searched: `agent` itself, and with `imported` those with imported ones.
    fn searched_agents(&self, agent: Uuid, imported: bool) -> Vec<Uuid> {
        let others = if imported { self.imported_by_others(Some(agent)) } else { Vec::new() };
        std::iter::once(agent).chain(others).collect()
    }

    /// Returns the newest session that is not the live one.
    async fn previous(&self, conversation: ConversationKey, imported: bool) -> Result<Option<SessionRow>> {
        let live = self.registry.live_session(conversation);
        let newest = self.nth_newest(conversation, imported, 0).await?;
        match newest {
            Some(row) if Some(row.header.id) == live => self.nth_newest(conversation, imported, 1).await,
            other => Ok(other),
        }
    }

    /// Finds a session by its slug or the start of it, then by words of its title.
    async fn find_by_words(&self, agents: Vec<Uuid>, scope: &SessionScope, text: &str) -> Result<Option<SessionRow>> {
        // Two characters are a word in some scripts.
        if text.is_ascii() && text.len() < MIN_WORD {
            return Ok(None);
        }
        let mut with_slug = self.table.list_with_slug(agents.clone(), text.to_owned()).await?;
        with_slug.retain(|row| scope.contains_session(&row.header));
        if !with_slug.is_empty() {
            return self.ensure_unique(text, with_slug).await;
        }
        let mut with_title = self.table.list_with_title_words(agents, text.to_owned()).await?;
        with_title.retain(|row| scope.contains_session(&row.header));
        if with_title.is_empty() { Ok(None) } else { self.ensure_unique(text, with_title).await }
    }

    /// Finds a session by its exact name, then by a unique prefix. The agent's own sessions come before those of others,
    /// which are considered only if `others`.
    async fn find_by_text(
        &self,
        own: Uuid,
        others: bool,
        scope: &SessionScope,
        text: &str,
    ) -> Result<Option<SessionRow>> {
        let looked_in = &[Some(own), None][..if others { 2 } else { 1 }];
        for &agent in looked_in {
            let mut named = self.table.list_named(agent, text.to_owned()).await?;
            named.retain(|row| scope.contains_session(&row.header));
            if !named.is_empty() {
                return self.ensure_unique(text, named).await;
            }
        }
        if text.chars().count() < MIN_PREFIX {
            return Ok(None);
        }
        for &agent in looked_in {
            let mut beginning = self.table.list_with_prefix(agent, text.to_owned()).await?;
            beginning.retain(|row| scope.contains_session(&row.header));
            if !beginning.is_empty() {
                return self.ensure_unique(text, beginning).await;
            }
        }
        Ok(None)
    }

    /// Returns the only one of `rows`, which must not be empty.
    ///
    /// # Errors
    /// `ambiguous` with the first candidates, one a line, if there are several.
    async fn ensure_unique(&self, text: &str, mut rows: Vec<SessionRow>) -> Result<Option<SessionRow>> {
        if rows.len() == 1 {
            return Ok(rows.pop());
        }
        let (count, more) = match rows.len() as u64 {
            MAX_CANDIDATES.. => (format!("{MAX_CANDIDATES} or more"), Some("more".to_owned())),
            count => {
                let more = count.checked_sub(LISTED_CANDIDATES as u64).filter(|more| *more > 0);
                (count.to_string(), more.map(|more| format!("{more} more")))
            }
        };
        rows.truncate(LISTED_CANDIDATES);
        let several = rows.iter().any(|row| row.header.agent_id != rows[0].header.agent_id);
        let short = self.table.short_ids(rows.iter().map(|row| row.header.id).collect()).await?;
        let mut candidates: Vec<String> =
            short.iter().zip(&rows).map(|(id, row)| candidate_line(id, row, several)).collect();
        let shown: String = text.chars().take(80).collect();
        let listing = match shown.strip_prefix("tag:").or(shown.strip_prefix('#')) {
            Some(tag) => format!("--tag {tag}"),
            None => shown.clone(),
        };
        candidates.extend(more.map(|more| format!("  … and {more}: chorusctl history {listing}")));
        Err(Error::new(ErrorKind::Ambiguous, format!("{shown:?} matches {count} sessions"))
            .hint(format!("use more of the name, or the ID:\n{}", candidates.join("\n"))))
    }

    /// Converts rows into sessions with their short ids, and checks whether their files exist.
    pub async fn describe_all(&self, rows: Vec<SessionRow>) -> Result<Vec<Session>> {
        let short = self.table.short_ids(rows.iter().map(|row| row.header.id).collect()).await?;
        self.describe_rows(rows, short.into_iter().map(|text| (text, None))).await
    }

    /// Like [`SessionReader::describe_all`], with short ids that are known already.
    pub async fn describe_with_short_ids(&self, rows: Vec<SessionRow>, short: Vec<ShortId>) -> Result<Vec<Session>> {
        self.describe_rows(rows, short.into_iter().map(|short| (short.text, Some(short.unique_prefix)))).await
    }

    async fn describe_rows(
        &self,
        rows: Vec<SessionRow>,
        short: impl Iterator<Item = (String, Option<String>)>,
    ) -> Result<Vec<Session>> {
        let dirs = self.agent_dirs(rows.iter().map(|row| row.header.agent_id)).await?;
        Ok(rows
            .into_iter()
            .zip(short)
            .map(|(row, (short_id, unique_prefix))| {
                let path = dirs
                    .get(&row.header.agent_id)
                    .map(|dir| session_form::find(session_files::path_of(dir, &row.header.session_id)))
                    .unwrap_or_default();
                let available = row.corrupt.is_none() && (self.store.is_shared(&row) || path.is_file());
                Session {
                    header: row.header,
                    short_id,
                    unique_prefix,
                    file_path: path.to_string_lossy().into_owned(),
                    available,
                    corrupt: row.corrupt,
                }
            })
            .collect())
    }

    /// Converts one row as [`SessionReader::describe_all`] does.
    pub async fn describe(&self, row: SessionRow) -> Result<Session> {
        let mut sessions = self.describe_all(vec![row]).await?;
        sessions.pop().ok_or_else(|| Error::internal("a session listing was aborted"))
    }

    /// Returns the directories of agents, including destroyed ones.
    async fn agent_dirs(&self, ids: impl Iterator<Item = Uuid>) -> Result<HashMap<Uuid, PathBuf>> {
        let mut dirs = HashMap::new();
        let mut others = Vec::new();
        for id in ids {
            if dirs.contains_key(&id) || others.contains(&id) {
                continue;
            }
            match self.agents.index.by_id(id) {
                Some(entry) => {
                    dirs.insert(id, entry.settings.dir.clone());
                }
                None => others.push(id),
            }
        }
        if !others.is_empty() {
            for row in self.agents.table.list_by_id(others).await? {
                dirs.insert(row.id, self.agents.home.join(row.dir));
            }
        }
        Ok(dirs)
    }

    /// Returns the directory of the agent that owns a session.
    pub async fn agent_dir(&self, session: &SessionHeader) -> Result<PathBuf> {
        let id = session.agent_id;
        Ok(self.agent_dirs(std::iter::once(id)).await?.remove(&id).unwrap_or_default())
    }

    /// Returns the path of a session's file.
    pub async fn path(&self, session: &SessionHeader) -> Result<PathBuf> {
        Ok(session_form::find(session_files::path_of(&self.agent_dir(session).await?, &session.session_id)))
    }

    /// Opens the file of a session for reading messages from any position. Fails like [`SessionReader::read_file`].
    pub async fn open_messages(&self, row: &SessionRow) -> Result<IndexedFile> {
        let path = self.local_path(row).await?;
        let store = self.store.clone();
        let opened = run_blocking(move || store.files.index_cache.open(&path)).await?;
        opened.map_err(|e| corrupt_error(&row.header.session_id, &e))
    }

    /// Reads the file of a session. Returns true as well if its messages were changed since it was saved.
    ///
    /// # Errors
    /// `session_not_found` if the file is missing, `corrupt_session` if it is not a valid session file.
    pub async fn read_file(&self, row: &SessionRow) -> Result<(SessionFile, bool)> {
        let path = self.local_path(row).await?;
        let found = run_blocking(move || session_files::read(&path)).await?;
        let file = found.file.map_err(|e| corrupt_error(&row.header.session_id, &e))?;
        let changed = !row.has_saved(&file.header, &file.sha256);
        Ok((file, changed))
    }

    /// Reads the file of a session without waiting until its messages are hashed. Fails like [`SessionReader::read_file`].
    pub async fn read_unverified(&self, row: &SessionRow) -> Result<UnverifiedSession> {
        let path = self.local_path(row).await?;
        let read = run_blocking(move || UnverifiedSession::read(&path)).await?;
        read.map_err(|e| corrupt_error(&row.header.session_id, &e))
    }
}

/// The limit on sessions that are looked at when a name means several.
const MAX_CANDIDATES: u64 = 20;

/// The number of candidates that an error lists.
const LISTED_CANDIDATES: usize = 5;

/// The limit on characters of a candidate's title.
const MAX_TITLE: usize = 60;

/// Formats a session as `history` shows it: id, time, its agent if `with_agent`, title.
fn candidate_line(short_id: &str, row: &SessionRow, with_agent: bool) -> String {
    let header = &row.header;
    let title = header.description.as_deref().or(header.summary.as_deref()).unwrap_or(&header.session_id);
    let title: String = title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_TITLE).collect();
    let when = if header.trigger == Trigger::Import { header.started_at } else { header.saved_at };
    let when = when.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
    let agent = if with_agent { format!("{}  ", header.agent_name) } else { String::new() };
    format!("  {short_id}  {when}  {agent}{title}")
}
