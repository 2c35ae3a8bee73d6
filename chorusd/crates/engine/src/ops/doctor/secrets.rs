//! The operation `doctor.secrets`: finds secrets in what is stored.

mod home_files;

use chorus_base::error::{Error, Result};
use chorus_catalog::{SessionQuery, SessionRow};
use chorus_proto::ErrorKind;
use chorus_proto::methods::doctor::{SecretPlace, SecretPlaceKind, SecretsParams, SecretsResult};
use chorus_proto::methods::trash::TrashKind;
use chorus_redact::Redactor;
use chorus_runtime::run_blocking;
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};
use chorus_store::index_cache::IndexedFile;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use self::home_files::FileSearch;
use crate::agent::command;
use crate::ops::Ops;
use crate::ops::secret_counts::SecretCounts;
use crate::ops::session::import::OnProgress;
use crate::ops::session::purge::MAX_ERASURE_WAIT;
use chorus_agent_core::context::{PageBudget, PageRange};

const DEFAULT_LIMIT: u64 = 1_000;
const MAX_LIMIT: u64 = 10_000;
/// Sessions that are listed at once.
const SESSIONS_AT_ONCE: u64 = 500;
/// Schedules that are listed at once, of which an agent may have fewer.
const SCHEDULES_AT_ONCE: u64 = 1_000;
/// The limit on secrets that are named of a place.
const MAX_SECRETS: usize = 20;
/// Bytes of live messages that are read at once.
const PAGE: PageBudget = PageBudget { page_bytes: 4 << 20, message_bytes: usize::MAX };
/// The limit on lines about what could not be read.
const MAX_UNREAD: usize = 20;

/// Searches saved, live and deleted conversations, memory and the files of the home, of one agent or of all. Workspaces are not searched: they
/// are their owner's. Reports the number of saved conversations that were read.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `storage_failed`. What cannot be read is named in the result.
pub fn secrets<'a>(
    ops: &'a Ops,
    params: SecretsParams,
    mut progress: OnProgress,
) -> BoxFuture<'a, Result<SecretsResult>> {
    Box::pin(async move {
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Error::invalid(format!("`limit` must be 1 to {MAX_LIMIT}")));
        }
        let agent = match params.agent.as_deref() {
            Some(name) => Some(ops.agent_resolver.resolve(Some(name)).await?.settings.id),
            None => None,
        };
        let mut found = Findings { limit, result: SecretsResult::default() };
        search_sessions(ops, agent, &mut found, &mut progress).await?;
        search_live(ops, agent, &mut found).await;
        search_memory(ops, agent, &mut found).await?;
        search_schedules(ops, agent, &mut found).await?;
        search_trash(ops, agent, &mut found).await?;
        search_files(ops, agent, &mut found).await?;
        if !ops.search.wait_until_erased(MAX_ERASURE_WAIT).await {
            let why = "deleted texts in it are still being overwritten; try again in a minute";
            let failure = ops.search.index().err().unwrap_or_else(|| Error::new(ErrorKind::Busy, why));
            found.skip("the search index", &failure);
        }
        if ops.store.is_purge_due().await? {
            let why = "deleted texts in them are still being overwritten; try again in a minute";
            found.skip("the databases", &Error::new(ErrorKind::Busy, why));
        }
        Ok(found.result)
    })
}

/// Collects the places.
struct Findings {
    limit: u64,
    result: SecretsResult,
}

impl Findings {
    /// Notes that a place was read, and that it has these secrets.
    fn add(&mut self, place: SecretPlace, secrets: SecretCounts) {
        self.result.searched += 1;
        if secrets.is_empty() {
            return;
        }
        self.result.total += 1;
        if self.result.total <= self.limit {
            let mut named = secrets.to_list();
            let rest = named.split_off(named.len().min(MAX_SECRETS));
            let more = Some(rest.len() as u64).filter(|more| *more > 0);
            let place = SecretPlace { secrets: named, more_secrets: more, messages: secrets.messages, ..place };
            self.result.places.push(place);
        }
    }

    /// Notes that something could not be read.
    fn skip(&mut self, what: &str, failure: &Error) {
        match self.result.unread.len() {
            0..MAX_UNREAD => self.result.unread.push(format!("{what}: {}", failure.message)),
            MAX_UNREAD => self.result.unread.push("and more".to_owned()),
            _ => {}
        }
    }
}

fn place(kind: SecretPlaceKind, agent: Option<&str>, id: Option<Uuid>, name: &str) -> SecretPlace {
    let (agent, name) = (agent.map(str::to_owned), name.to_owned());
    SecretPlace { kind, agent, id, short_id: None, name, messages: Vec::new(), secrets: Vec::new(), more_secrets: None }
}

async fn search_sessions(
    ops: &Ops,
    agent: Option<Uuid>,
    found: &mut Findings,
    progress: &mut OnProgress,
) -> Result<()> {
    let (mut after, mut read, mut elsewhere) = (0, 0, 0_u64);
    let query = SessionQuery { agent, offset: 0, limit: 1, ..SessionQuery::default() };
    let (_, total) = ops.store.catalog.sessions.list(query).await?;
    loop {
        // By their positions: none is passed over if others are saved or deleted meanwhile.
        let page = ops.store.catalog.sessions.stamps_after(after, SESSIONS_AT_ONCE).await?;
        if page.is_empty() {
            // Pages have only those of the agents that this node has.
            elsewhere += total.saturating_sub(read);
            if elsewhere > 0 && ops.store.sqlite().is_none() {
                let what = format!("{elsewhere} sessions of agents of other nodes, or of destroyed ones");
                found.skip(&what, &Error::invalid("search there: chorusctl doctor --secrets"));
            }
            return Ok(());
        }
        after = page.iter().map(|stamp| stamp.position).max().unwrap_or(after);
        let mut rows = ops.store.catalog.sessions.get_all(page.iter().map(|stamp| stamp.id).collect()).await?;
        rows.retain(|row| agent.is_none_or(|id| id == row.header.agent_id));
        rows.sort_by_key(|row| (row.header.saved_at, row.header.id));
        let short_ids = ops.store.catalog.sessions.short_ids(rows.iter().map(|row| row.header.id).collect()).await?;
        for (row, short_id) in rows.into_iter().zip(short_ids) {
            progress(read, total.max(read + 1));
            read += 1;
            let header = &row.header;
            if ops.agents.by_id(header.agent_id).is_none() {
                // In the trash, with its agent; or that of another node.
                elsewhere += 1;
                continue;
            }
            let at = place(SecretPlaceKind::Session, Some(&header.agent_name), Some(header.id), &header.session_id);
            match read_session(ops, &row).await {
                Ok((secrets, in_name)) => {
                    // The name is made of the title or of the first message.
                    let name = if in_name { header.id.to_string() } else { at.name.clone() };
                    found.add(SecretPlace { name, short_id: Some(short_id), ..at }, secrets);
                }
                Err(failure) => found.skip(&format!("session {}", header.session_id), &failure),
            }
        }
    }
}

/// Finds the secrets of a session: of its messages and of its header. Returns true as well if its name may be made of one.
async fn read_session(ops: &Ops, row: &SessionRow) -> Result<(SecretCounts, bool)> {
    let file = ops.sessions.open_messages(row).await?;
    let header = serde_json::to_string(&ops.sessions.header_with_notes(row).await?).unwrap_or_default();
    let (redactor, name) = (ops.redactor.clone(), row.header.session_id.clone());
    run_blocking(move || {
        let mut secrets = SecretCounts::default();
        secrets.add(redactor.find_secrets_in_json(&header), None);
        let in_header = !secrets.is_empty();
        search_messages(&file, &redactor, &name, &mut secrets)?;
        let in_name = in_header || secrets.messages.first() == Some(&1);
        Ok((secrets, in_name))
    })
    .await
}

fn search_messages(file: &IndexedFile, redactor: &Redactor, name: &str, secrets: &mut SecretCounts) -> Result<()> {
    let (mut reader, mut number) = (file.messages_from(0), 0);
    let corrupt = |e| Error::new(ErrorKind::CorruptSession, format!("the session {name} {e}"));
    while let Some(message) = reader.read()?.map_err(corrupt)? {
        number += 1;
        let json = std::str::from_utf8(message.json()).unwrap_or_default();
        secrets.add(redactor.find_secrets_in_json(json), Some(number));
    }
    Ok(())
}

/// Searches the live conversations, with their notes.
async fn search_live(ops: &Ops, agent: Option<Uuid>, found: &mut Findings) {
    for (key, _) in ops.registry.live_heads() {
        let Some(entry) = ops.agents.by_id(key.agent).filter(|entry| agent.is_none_or(|id| id == entry.settings.id))
        else {
            continue;
        };
        let name = ops.agents.conversations.name(key).unwrap_or_else(|| MAIN_CONVERSATION.to_owned());
        let at = place(SecretPlaceKind::Conversation, Some(&entry.settings.name), None, &name);
        match read_live(ops, key).await {
            Ok(secrets) => found.add(at, secrets),
            Err(failure) => found.skip(&format!("conversation {name} of {}", entry.settings.name), &failure),
        }
    }
}

async fn read_live(ops: &Ops, key: ConversationKey) -> Result<SecretCounts> {
    let (mut secrets, mut next, mut number) = (SecretCounts::default(), Some(0), 0);
    while let Some(offset) = next {
        let range = PageRange::From { offset, limit: u64::MAX };
        let page = ops.registry.ask(key, command::read_page(range, PAGE)).await?;
        if offset == 0 {
            let notes = serde_json::to_string(&*page.working_set).unwrap_or_default();
            secrets.add(ops.redactor.find_secrets_in_json(&notes), None);
        }
        next = page.next;
        let (redactor, messages) = (ops.redactor.clone(), page.messages);
        (secrets, number) = run_blocking(move || {
            for message in &messages {
                number += 1;
                let json = std::str::from_utf8(message.json()).unwrap_or_default();
                secrets.add(redactor.find_secrets_in_json(json), Some(number));
            }
            Ok((secrets, number))
        })
        .await?;
    }
    Ok(secrets)
}

async fn search_memory(ops: &Ops, agent: Option<Uuid>, found: &mut Findings) -> Result<()> {
    for entry in ops.agents.all() {
        if agent.is_some_and(|id| id != entry.settings.id) {
            continue;
        }
        for row in ops.store.catalog.memories.list_written_by(entry.settings.id).await? {
            let mut secrets = SecretCounts::default();
            secrets.add(ops.redactor.find_secrets(row.text.as_bytes()), None);
            let name = row.id.to_string();
            found.add(place(SecretPlaceKind::Memory, Some(&entry.settings.name), Some(row.id), &name), secrets);
        }
    }
    Ok(())
}

/// Searches the messages of schedules.
async fn search_schedules(ops: &Ops, agent: Option<Uuid>, found: &mut Findings) -> Result<()> {
    let agents = match agent {
        Some(id) => vec![id],
        None => ops.store.catalog.agents.list(true).await?.into_iter().map(|row| row.id).collect(),
    };
    for agent in agents {
        for row in ops.store.catalog.schedules.list(Some(agent), 0, SCHEDULES_AT_ONCE).await? {
            let mut secrets = SecretCounts::default();
            secrets.add(ops.redactor.find_secrets(row.message.as_bytes()), None);
            let entry = ops.agents.by_id(row.agent);
            let agent = entry.as_ref().map(|entry| &*entry.settings.name);
            found.add(place(SecretPlaceKind::Schedule, agent, Some(row.id), &row.name), secrets);
        }
    }
    Ok(())
}

async fn search_trash(ops: &Ops, agent: Option<Uuid>, found: &mut Findings) -> Result<()> {
    for entry in crate::ops::trash::list_entries(&ops.home).await? {
        let note = entry.metadata.as_ref();
        if agent.is_some_and(|id| note.is_none_or(|note| note.agent_id != id)) {
            continue;
        }
        let memory = note.and_then(|note| note.memory.as_ref()).map(|row| row.text.clone());
        let name = match (note, &memory) {
            // That of a memory is the beginning of its text.
            (Some(note), None) => note.name.clone(),
            _ => entry.id.clone(),
        };
        let session = note.filter(|note| note.kind == TrashKind::Session).and_then(|note| note.session.as_ref());
        let at = place(SecretPlaceKind::Trash, session.map(|of| &*of.agent_name), session.map(|of| of.id), &name);
        let (redactor, content) = (ops.redactor.clone(), entry.content());
        let searched = run_blocking(move || {
            let mut secrets = SecretCounts::default();
            secrets.add(redactor.find_secrets(memory.unwrap_or_default().as_bytes()), None);
            FileSearch::of_trash(&content).each(|file, _| home_files::search_file(file, &redactor, &mut secrets))?;
            Ok(secrets)
        });
        match searched.await {
            Ok(secrets) => found.add(at, secrets),
            Err(failure) => found.skip(&format!("{name} in the trash"), &failure),
        }
    }
    Ok(())
}

/// Searches the files of the home that are no sessions: configurations, notes, logs of tasks and of the daemon.
async fn search_files(ops: &Ops, agent: Option<Uuid>, found: &mut Findings) -> Result<()> {
    let (home, redactor) = (ops.home.clone(), ops.redactor.clone());
    let root = match agent.and_then(|id| ops.agents.by_id(id)) {
        Some(entry) => entry.settings.dir.clone(),
        None => home.clone(),
    };
    let files = run_blocking(move || {
        let mut files = Vec::new();
        FileSearch::of_home(&home, &root).each(|file, name| {
            let mut secrets = SecretCounts::default();
            let searched = home_files::search_file(file, &redactor, &mut secrets);
            files.push((name.to_owned(), searched.map(|()| secrets)));
            Ok(())
        })?;
        Ok(files)
    })
    .await?;
    for (name, searched) in files {
        match searched {
            Ok(secrets) => found.add(place(SecretPlaceKind::File, None, None, &name), secrets),
            Err(failure) => found.skip(&name, &failure),
        }
    }
    Ok(())
}
