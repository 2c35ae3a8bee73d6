//! The session that a continuation starts from: what the new context takes from it, and warnings about it.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::compaction::check_worth_keeping;
use chorus_agent_core::context::{PageBudget, PageRange, read_page};
use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_catalog::SessionRow;
use chorus_proto::{
    ErrorKind, ItemSource, Message, NewMessage, Role, SessionHeader, SummarySource, TokenPair, WorkingSet,
};
use chorus_runtime::run_blocking;
use chorus_session::stored_message::StoredMessage;
use chorus_session::summary;
use chorus_session::summary::{
    ConversationSample, ExtractedItems, ExtractionNotes, FindingLimits, build_background, build_briefing,
    collect_findings,
};
use uuid::Uuid;

use super::ContinuationStarter;
use super::carried_set::{CarriedSet, carry_on};
use crate::agent::note_extraction::{Extraction, ExtractionOutcome};
use crate::agent::opening_request::request_acknowledgement;
use crate::ops::conversations::ConversationTarget;

/// The limit on the newest messages that are searched for decisions, tasks and files.
const MAX_SEARCHED_MESSAGES: u64 = 20_000;

/// The hint when the saved session of a live context cannot be used for its continuation.
pub(super) const CONTEXT_UNCHANGED_HINT: &str = "the conversation is unchanged; compact it again";

/// A session as the source of a new context.
#[derive(Debug)]
pub(super) struct ContinuationSource {
    pub header: SessionHeader,
    /// The session's working set, extended by findings from its messages.
    pub extended_set: WorkingSet,
    pub background: String,
    /// Tokens that the working set and the messages may have together in the agent's window.
    window_tokens: u64,
    /// All messages, if the file could be read.
    messages: Arc<Vec<StoredMessage>>,
    /// Ids of the first and the last message.
    pub end_ids: (Option<String>, Option<String>),
    pub warnings: Vec<String>,
}

/// The first message of a new context.
#[derive(Debug)]
pub(super) struct OpeningMessage {
    pub text: String,
    pub message: StoredMessage,
    pub cost: TokenPair,
    /// True if Chorus wrote it instead of a model.
    pub generated: bool,
}

/// The origin of a new context's working set.
#[derive(Debug, Default)]
pub(super) struct CarryOver {
    pub source: Option<ItemSource>,
    /// The reason why the model's notes were not used.
    pub fallback: Option<String>,
    /// New facts that are offered to be remembered.
    pub offered_facts: Vec<String>,
    /// Open tasks that the model found to be done.
    pub done_tasks: Vec<String>,
}

/// A model's notes about a session, or why there are none.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelNotes {
    found: Option<ExtractedItems>,
    fallback: Option<String>,
    /// The number of messages at that time, and the id of the last one.
    message_count: usize,
    last_id: Option<String>,
}

impl ContinuationSource {
    /// Reads a session. If only its file is missing or damaged, uses the summary in the catalog instead.
    ///
    /// # Errors
    /// `session_not_found` or `corrupt_session` if there is no summary either.
    pub(super) async fn read(starter: &ContinuationStarter, agent: &AgentSettings, row: &SessionRow) -> Result<Self> {
        Self::load(starter, agent, row, false).await
    }

    /// Reads a session whose file must contain every saved message, because the live context is about to be replaced.
    ///
    /// # Errors
    /// `session_not_found`, `corrupt_session`; the caller must not end the context then.
    pub(super) async fn read_complete(
        starter: &ContinuationStarter,
        agent: &AgentSettings,
        row: &SessionRow,
    ) -> Result<Self> {
        let read = Self::load(starter, agent, row, true).await;
        read.map_err(|failure| if is_unreadable(&failure) { failure.hint(CONTEXT_UNCHANGED_HINT) } else { failure })
    }

    /// Checks again that the file is complete, since time has passed while a model was called. Fails like
    /// [`ContinuationSource::read_complete`].
    pub(super) async fn ensure_complete(
        starter: &ContinuationStarter,
        agent: &AgentSettings,
        row: &SessionRow,
    ) -> Result<()> {
        Self::read_complete(starter, agent, row).await.map(drop)
    }

    async fn load(starter: &ContinuationStarter, agent: &AgentSettings, row: &SessionRow, whole: bool) -> Result<Self> {
        let _no_deletes = starter.sessions_lock.read().await;
        let mut warnings = Vec::new();
        let name = &row.header.session_id;
        if row.header.agent_id != agent.id {
            warnings.push(format!("session {name} belongs to agent {}", row.header.agent_name));
        }
        let (header, messages) = match starter.sessions.read_file(row).await {
            Ok((_, true)) if whole => {
                let changed = format!("the file of {name} was changed after it was saved");
                return Err(Error::new(ErrorKind::CorruptSession, changed));
            }
            Ok((file, changed)) => {
                if changed {
                    warnings.push(format!("the file of {name} was changed after it was saved"));
                }
                // The row has the newest summary; the file has what the catalog does not store.
                (SessionHeader { working_set: file.header.working_set, ..row.header.clone() }, file.messages)
            }
            Err(failure) if !whole && is_unreadable(&failure) && row.header.summary.is_some() => {
                warnings.push(format!("{}; only its summary is available", failure.message));
                (row.header.clone(), Vec::new())
            }
            Err(failure) => return Err(failure),
        };
        if header.summary.is_none() {
            warnings.push(format!("session {name} has no summary; used its messages instead"));
        }
        if let Some(before) = header.parent_id
            && !has_file(starter, before).await?
        {
            warnings.push(format!("its parent session ({before}) is missing, so nothing was taken from it"));
        }
        let messages = Arc::new(messages);
        let read = messages.clone();
        let (header, found, ends) = run_blocking(move || Ok(extend_by_findings(header, &read))).await?;
        let background = build_background(&header, &found);
        let window_tokens = agent.window.tokens;
        Ok(Self { header, extended_set: found, background, window_tokens, messages, end_ids: ends, warnings })
    }

    /// Has the agent's model extract notes from the messages from `from` on; earlier ones are covered by the working
    /// set.
    pub(super) async fn extract_notes(
        &self,
        starter: &ContinuationStarter,
        target: &ConversationTarget,
        from: usize,
    ) -> ModelNotes {
        let extraction = Extraction {
            registry: &starter.registry,
            settings: &target.agent.settings,
            conversation: target.key.stored_id(),
            context_and_turn: (None, None),
            messages: &self.messages,
            range: from..self.messages.len(),
            working_set: &self.header.working_set,
            single_attempt: false,
        };
        let in_vain = |why| ModelNotes { fallback: Some(why), ..ModelNotes::default() };
        let ExtractionNotes { found, fallback } = match extraction.run(starter.stop.child_token()).await {
            ExtractionOutcome::Skipped => return ModelNotes::default(),
            ExtractionOutcome::Failed(why) => return in_vain(why),
            ExtractionOutcome::Extracted(notes) => *notes,
        };
        if let Err(why) = check_worth_keeping(&found, self.messages.get(from..).unwrap_or_default()) {
            return in_vain(format!("the model's reply {why}"));
        }
        ModelNotes { found: Some(found), fallback, message_count: self.messages.len(), last_id: self.end_ids.1.clone() }
    }

    /// Applies a model's notes: they replace the findings of rules, except for messages that were added since. Without
    /// notes the findings stay.
    pub(super) fn apply_notes(&mut self, written: &ModelNotes) -> CarryOver {
        let ModelNotes { found, fallback, message_count: count, last_id: last } = written.clone();
        let Some(found) = found else { return CarryOver { fallback, ..CarryOver::default() } };
        let (read, since) = self.messages.split_at_checked(count).unwrap_or_default();
        let id = read.last().and_then(|message| message.to_message().ok()).map(|message| message.id);
        if id.is_none() || id != last {
            let fallback = Some("the conversation changed while the model was summarizing it".to_owned());
            return CarryOver { fallback, ..CarryOver::default() };
        }
        let offered = found.facts.iter().map(|fact| fact.text.clone()).collect();
        if self.header.summary_source != SummarySource::Llm {
            self.header.summary = found.summary.clone().or(self.header.summary.take());
        }
        let mut merged = self.header.working_set.clone();
        let open = |set: &WorkingSet| set.open_tasks.iter().map(|task| task.text.clone()).collect::<Vec<_>>();
        let mut done = open(&merged);
        found.add_to(&mut merged);
        let still = open(&merged);
        done.retain(|task| !still.contains(task));
        ExtractedItems::from(collect_findings(since, &merged, FindingLimits::PER_COMPACTION)).add_to(&mut merged);
        self.extended_set = merged;
        self.background = build_background(&self.header, &self.extended_set);
        CarryOver { source: Some(ItemSource::Model), fallback, offered_facts: offered, done_tasks: done }
    }

    /// Returns the working set of a context that continues from this session: the background, and what is carried on
    /// through every link of the chain.
    #[must_use]
    pub(super) fn working_set(&self) -> CarriedSet {
        let working_set = WorkingSet { background: Some(self.background.clone()), ..carry_on(&self.extended_set) };
        CarriedSet::new(working_set, self.window_tokens)
    }

    /// Returns the message that opens the new context: the model's if `ask` is set and it replies, otherwise a
    /// generated one.
    pub(super) async fn opening_message(
        &self,
        starter: &ContinuationStarter,
        target: &ConversationTarget,
        ask: bool,
    ) -> Result<OpeningMessage> {
        let (reply, cost) = match ask {
            true => {
                let briefing = build_briefing(&self.background, &self.extended_set);
                let (registry, settings) = (&starter.registry, &target.agent.settings);
                let (conversation, stop) = (target.key.stored_id(), starter.stop.child_token());
                request_acknowledgement(registry, settings, conversation, &briefing, stop).await
            }
            false => (None, TokenPair::default()),
        };
        let generated = reply.is_none();
        let text = reply.unwrap_or_else(|| summary::build_acknowledgement(&self.header, &self.extended_set));
        let new = NewMessage::text(Role::Assistant, text.clone());
        let message = Message { generated, ..new.complete(|| new_id().to_string(), starter.clock.now()) };
        let message = StoredMessage::new(&message).map_err(|e| Error::internal(e.to_string()))?;
        Ok(OpeningMessage { text, message, cost, generated })
    }
}

fn is_unreadable(failure: &Error) -> bool {
    matches!(failure.kind, ErrorKind::SessionNotFound | ErrorKind::CorruptSession)
}

/// Returns true if a session is in the catalog and has its file or its body.
async fn has_file(starter: &ContinuationStarter, session: Uuid) -> Result<bool> {
    let Some(row) = starter.store.catalog.sessions.get(session).await? else { return Ok(false) };
    Ok(starter.store.is_shared(&row) || starter.sessions.path(&row.header).await?.is_file())
}

type ExtendedHeader = (SessionHeader, WorkingSet, (Option<String>, Option<String>));

/// Completes the header and the working set with findings from the messages.
fn extend_by_findings(mut header: SessionHeader, messages: &[StoredMessage]) -> ExtendedHeader {
    let mut found = header.working_set.clone();
    let (newest, _) = read_page(
        messages,
        PageRange::Last(MAX_SEARCHED_MESSAGES),
        PageBudget { page_bytes: usize::MAX, message_bytes: usize::MAX },
    );
    let findings = collect_findings(&newest, &found, FindingLimits::UNLIMITED);
    found.decisions.extend(findings.decisions);
    found.open_tasks.extend(findings.open_tasks);
    found.files_touched.extend(findings.files_touched);
    if header.summary.is_none() {
        let mut digest = ConversationSample::new();
        for index in ConversationSample::selected_indices(messages.len()) {
            if let Ok(message) = messages[index].to_message() {
                digest.push(&message);
            }
        }
        header.summary = summary::extract_summary(&digest).summary;
    }
    let id = |message: Option<&StoredMessage>| {
        message.and_then(|message| message.to_message().ok()).map(|message| message.id)
    };
    let ends = (id(messages.first()), id(messages.last()));
    (header, found, ends)
}
