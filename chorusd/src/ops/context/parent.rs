//! The session that a fresh context goes on from: what is taken over of it, and what a person should know about it.

use std::sync::Arc;

use chorus_proto::{
    ErrorKind, ItemSource, Message, NewMessage, Role, SessionHeader, SummarySource, TokenPair, WorkingSet,
};
use uuid::Uuid;

use crate::agent::Facts;
use crate::agent::acknowledge::acknowledge;
use crate::agent::compaction::worth_keeping;
use crate::agent::context::{Pick, Room, page};
use crate::agent::extract::{Extracted, Extraction};
use crate::clock::new_id;
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::session::get::read;
use crate::ops::{Ops, blocking, view};
use crate::store::catalog::SessionRow;
use crate::summary::{self, Digest, Found, Notes, background, findings};

/// The newest messages that are looked at for decisions, tasks and files.
const NEWEST: u64 = 2000;

/// What became of a live context whose save cannot be gone on from.
pub const STAYS: &str = "the live context stays as it is; compact it again";

/// A session as a fresh context knows it.
#[derive(Debug)]
pub struct Parent {
    pub header: SessionHeader,
    /// The session's own working set, with what its messages name beside.
    pub found: WorkingSet,
    pub background: String,
    /// All of them, where its file could be read.
    messages: Arc<Vec<Stored>>,
    /// Ids of the first and the last message.
    pub ends: (Option<String>, Option<String>),
    pub warnings: Vec<String>,
}

/// The first message of a fresh context.
#[derive(Debug)]
pub struct Acknowledged {
    pub text: String,
    pub message: Stored,
    pub cost: TokenPair,
    /// Chorus wrote it.
    pub generated: bool,
}

/// Who chose what a fresh context knows of the one before.
#[derive(Debug, Default)]
pub struct Kept {
    pub source: Option<ItemSource>,
    /// Why it was not the model.
    pub fallback: Option<String>,
    /// New facts that are worth remembering.
    pub offered: Vec<String>,
    /// Open tasks that are done.
    pub done: Vec<String>,
}

/// What a model wrote down of a session, or why it did not.
#[derive(Debug, Clone, Default)]
pub struct Written {
    found: Option<Found>,
    fallback: Option<String>,
    /// Messages that there were then, and the id of the last.
    count: usize,
    last: Option<String>,
}

impl Parent {
    /// Reads it. Where only the file is gone or damaged, its summary in the catalog is all that is known.
    ///
    /// # Errors
    /// `session_not_found` or `corrupt_session` where there is no summary either.
    pub async fn read(ops: &Ops, agent: &Facts, row: &SessionRow) -> Result<Self> {
        Self::of(ops, agent, row, false).await
    }

    /// Reads it where its file has every message that was saved: what is not in it will be nowhere.
    ///
    /// # Errors
    /// `session_not_found`, `corrupt_session`; then nothing may be ended for its sake.
    pub async fn whole(ops: &Ops, agent: &Facts, row: &SessionRow) -> Result<Self> {
        let read = Self::of(ops, agent, row, true).await;
        read.map_err(|failure| if is_lost(&failure) { failure.hint(STAYS) } else { failure })
    }

    /// Whether that still holds: a model's words may have been waited for since.
    ///
    /// # Errors
    /// As [`Parent::whole`].
    pub async fn still_whole(ops: &Ops, agent: &Facts, row: &SessionRow) -> Result<()> {
        Self::whole(ops, agent, row).await.map(drop)
    }

    async fn of(ops: &Ops, agent: &Facts, row: &SessionRow, whole: bool) -> Result<Self> {
        let _no_deletes = ops.sessions_lock.read().await;
        let mut warnings = Vec::new();
        let name = &row.header.session_id;
        if row.header.agent_id != agent.id {
            warnings.push(format!("the session {name} is one of {}", row.header.agent_name));
        }
        let (header, messages) = match read(ops, row).await {
            Ok((_, true)) if whole => {
                let changed = format!("the file of {name} was changed since it was saved");
                return Err(Failure::new(ErrorKind::CorruptSession, changed));
            }
            Ok((file, changed)) => {
                if changed {
                    warnings.push(format!("the file of {name} was changed since it was saved"));
                }
                // The row has the newest summary; the file, what only it holds.
                (SessionHeader { working_set: file.header.working_set, ..row.header.clone() }, file.messages)
            }
            Err(failure) if !whole && is_lost(&failure) && row.header.summary.is_some() => {
                warnings.push(format!("{}; only its summary is known", failure.message));
                (row.header.clone(), Vec::new())
            }
            Err(failure) => return Err(failure),
        };
        if header.summary.is_none() {
            warnings.push(format!("the session {name} has no summary; what is known of it is taken from its messages"));
        }
        if let Some(before) = header.parent_id
            && !is_there(ops, before).await?
        {
            warnings.push(format!("the session before it ({before}) is gone; nothing is taken from that one"));
        }
        let messages = Arc::new(messages);
        let read = messages.clone();
        let (header, found, ends) = blocking(move || Ok(known(header, &read))).await?;
        let background = background(&header, &found);
        Ok(Self { header, found, background, messages, ends, warnings })
    }

    /// Has the agent's model write down what must not be forgotten of the messages from `from` on, those before it being known already.
    pub async fn write_down(&self, ops: &Ops, agent: &Facts, from: usize) -> Written {
        let extraction = Extraction {
            registry: &ops.registry,
            facts: agent,
            of: (None, None),
            record: &self.messages,
            leaving: from..self.messages.len(),
            known: &self.header.working_set,
            once: false,
        };
        let in_vain = |why| Written { fallback: Some(why), ..Written::default() };
        let Notes { found, fallback } = match extraction.run(ops.stop.child_token()).await {
            Extracted::NotAsked => return Written::default(),
            Extracted::InVain(why) => return in_vain(why),
            Extracted::Found(notes) => *notes,
        };
        if let Err(why) = worth_keeping(&found, self.messages.get(from..).unwrap_or_default()) {
            return in_vain(format!("the model's answer {why}"));
        }
        Written { found: Some(found), fallback, count: self.messages.len(), last: self.ends.1.clone() }
    }

    /// Takes what was written down: it takes the place of what rules found, but of messages that came since. Where there is nothing, that
    /// stays.
    pub fn take(&mut self, written: &Written) -> Kept {
        let Written { found, fallback, count, last } = written.clone();
        let Some(found) = found else { return Kept { fallback, ..Kept::default() } };
        let (read, since) = self.messages.split_at_checked(count).unwrap_or_default();
        let id = read.last().and_then(|message| message.to_message().ok()).map(|message| message.id);
        if id.is_none() || id != last {
            let fallback = Some("the conversation was changed while the model wrote it down".to_owned());
            return Kept { fallback, ..Kept::default() };
        }
        let offered = found.facts.iter().map(|fact| fact.text.clone()).collect();
        if self.header.summary_source != SummarySource::Llm {
            self.header.summary = found.summary.clone().or(self.header.summary.take());
        }
        let mut known = self.header.working_set.clone();
        let open = |set: &WorkingSet| set.open_tasks.iter().map(|task| task.text.clone()).collect::<Vec<_>>();
        let mut done = open(&known);
        found.add_to(&mut known);
        let still = open(&known);
        done.retain(|task| !still.contains(task));
        Found::from(findings(since, &known, summary::MOST)).add_to(&mut known);
        self.found = known;
        self.background = background(&self.header, &self.found);
        Kept { source: Some(ItemSource::Model), fallback, offered, done }
    }

    /// The working set of a context that goes on from it.
    #[must_use]
    pub fn working_set(&self) -> WorkingSet {
        WorkingSet {
            background: Some(self.background.clone()),
            pinned_facts: self.found.pinned_facts.clone(),
            ..WorkingSet::default()
        }
    }

    /// The words that open the context: the model's where there is one and `ask` is said, else Chorus's own.
    ///
    /// # Errors
    /// None that can be told: texts serialise.
    pub async fn acknowledge(&self, ops: &Ops, facts: &Facts, ask: bool) -> Result<Acknowledged> {
        let (said, cost) = match ask {
            true => acknowledge(&ops.registry, facts, &self.background, ops.stop.child_token()).await,
            false => (None, TokenPair::default()),
        };
        let generated = said.is_none();
        let text = said.unwrap_or_else(|| summary::acknowledgement(&self.header, &self.found));
        let new = NewMessage::text(Role::Assistant, text.clone());
        let message = Message { generated, ..new.complete(|| new_id().to_string(), ops.clock.now()) };
        let message = Stored::new(&message).map_err(|e| Failure::internal(e.to_string()))?;
        Ok(Acknowledged { text, message, cost, generated })
    }
}

fn is_lost(failure: &Failure) -> bool {
    matches!(failure.kind, ErrorKind::SessionNotFound | ErrorKind::CorruptSession)
}

/// Whether a session is in the catalog, and its file where it belongs.
async fn is_there(ops: &Ops, session: Uuid) -> Result<bool> {
    let Some(row) = ops.store.catalog.session(session).await? else { return Ok(false) };
    Ok(view::path(ops, &row.header).await?.is_file())
}

type Known = (SessionHeader, WorkingSet, (Option<String>, Option<String>));

/// What the header leaves open, told by the messages themselves.
fn known(mut header: SessionHeader, messages: &[Stored]) -> Known {
    let mut found = header.working_set.clone();
    let (newest, _) = page(messages, Pick::Last(NEWEST), Room { page: usize::MAX, message: usize::MAX });
    let said = findings(&newest, &found, usize::MAX);
    found.decisions.extend(said.decisions);
    found.open_tasks.extend(said.open_tasks);
    found.files_touched.extend(said.files_touched);
    if header.summary.is_none() {
        let mut digest = Digest::new();
        for index in Digest::indices(messages.len()) {
            if let Ok(message) = messages[index].to_message() {
                digest.push(&message);
            }
        }
        header.summary = summary::extract(&digest).summary;
    }
    let id = |message: Option<&Stored>| message.and_then(|message| message.to_message().ok()).map(|message| message.id);
    let ends = (id(messages.first()), id(messages.last()));
    (header, found, ends)
}
