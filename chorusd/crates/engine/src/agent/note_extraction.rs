//! Asks an agent's model to extract what must not be forgotten from messages that leave its window.

use std::ops::Range;
use std::pin::pin;
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_base::new_id;
use chorus_llm::{CallError, ErrorClass, ModelRef, ModelRequest, OutputFormat, Reply, StopReason};
use chorus_proto::{Message, NewMessage, Role, WorkingSet};
use chorus_session::stored_message::{ContextNo, StoredMessage, Totals};
use chorus_session::summary::{
    ExtractedItems, ExtractionNotes, FindingLimits, TranscriptChunk, answer_schema, build_chunk, collect_findings,
    parse_extraction, start_of_newest,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::registry::Registry;
use crate::usage::{CallKind, ModelCallInfo};

/// The system prompt of the extraction.
const SYSTEM: &str = "You take short, factual notes of conversations that others had.";

/// The structured form of the model's reply.
const NOTES_SHAPE: OutputFormat = OutputFormat {
    name: "write_down",
    description: "Records the important facts of the transcript.",
    schema: answer_schema,
};

/// Time limit for the whole extraction.
const EXTRACTION_TIMEOUT: Duration = Duration::from_secs(120);

/// Messages with fewer characters in total are not worth a call.
pub const MIN_CHARS: u64 = 400;

/// Maximum tokens of a reply, and the smallest limit that is set for one.
const MAX_REPLY_TOKENS: u64 = 4096;
const MIN_REPLY_TOKENS: u64 = 512;

/// Bytes of a chunk for a model of unknown context length, and of the largest and the smallest chunk.
const DEFAULT_CHUNK_BYTES: usize = 24 << 10;
const MAX_CHUNK_BYTES: usize = 96 << 10;
const MIN_CHUNK_BYTES: usize = 2 << 10;

/// Maximum number of chunks that the model reads; rules handle the older messages.
const MAX_CHUNKS: usize = 8;

/// Factors by which chunks become smaller if the model refuses one as too long, and if its reply was cut off.
const TOO_LONG_DIVISOR: usize = 4;
const CUT_REPLY_DIVISOR: usize = 2;

/// The outcome of an extraction.
#[derive(Debug)]
pub enum ExtractionOutcome {
    /// There is no model, or too little text.
    Skipped,
    Extracted(Box<ExtractionNotes>),
    /// The reason why there is nothing, for users.
    Failed(String),
}

/// An extraction.
#[derive(Debug)]
pub struct Extraction<'a> {
    pub registry: &'a Registry,
    pub settings: &'a AgentSettings,
    /// Id of the conversation; `None` for `main`.
    pub conversation: Option<Uuid>,
    /// The context, and the turn whose window was compacted.
    pub context_and_turn: (Option<ContextNo>, Option<Uuid>),
    pub messages: &'a [StoredMessage],
    /// The messages to extract from.
    pub range: Range<usize>,
    /// What is known of the messages that left earlier.
    pub working_set: &'a WorkingSet,
    /// Do not retry a reply that fails or was cut off.
    pub single_attempt: bool,
}

/// How the model is called for a chunk.
struct ChunkCall<'a> {
    target: &'a ModelRef,
    /// Maximum tokens of the reply.
    max_reply_tokens: u64,
    /// When the time limit ends.
    deadline: Instant,
    cancel: &'a CancellationToken,
    /// Whether a transient failure may be retried; only once.
    may_retry: bool,
}

impl Extraction<'_> {
    /// Extracts chunk by chunk, the oldest first. If a chunk fails, the findings of those before it stay and rules
    /// handle the rest. Rules also handle the messages that are too old for `MAX_CHUNKS`.
    pub async fn run(self, cancel: CancellationToken) -> ExtractionOutcome {
        let said = self.messages.get(self.range.clone()).map_or(0, |leaving| Totals::count(leaving).chars);
        let Some(model) = self.settings.model.as_deref().filter(|_| said >= MIN_CHARS) else {
            return ExtractionOutcome::Skipped;
        };
        let target = match self.registry.models.resolve(model) {
            Ok(target) => target,
            Err(failure) => return ExtractionOutcome::Failed(failure.message),
        };
        let (found, why) = self.extract_chunks(&target, &cancel).await;
        let Some(why) = why else { return ExtractionOutcome::Extracted(Box::new(found.into())) };
        tracing::warn!(agent = %self.settings.name, model = %target, why, "a model returned incomplete notes");
        if found.has_model_items() {
            let fallback = Some(format!("used the built-in rules for some messages: {why}"));
            ExtractionOutcome::Extracted(Box::new(ExtractionNotes { found, fallback }))
        } else {
            ExtractionOutcome::Failed(why)
        }
    }

    /// Returns the findings, and the reason if the model did not handle everything.
    async fn extract_chunks(&self, target: &ModelRef, cancel: &CancellationToken) -> (ExtractedItems, Option<String>) {
        let takes = self.registry.models.context_length(target);
        let mut room =
            takes.and_then(|tokens| usize::try_from(tokens).ok()).map_or(DEFAULT_CHUNK_BYTES, |tokens| tokens / 4 * 5);
        room = room.clamp(MIN_CHUNK_BYTES, MAX_CHUNK_BYTES);
        let answer = takes.map_or(MAX_REPLY_TOKENS / 2, |takes| (takes / 6).clamp(MIN_REPLY_TOKENS, MAX_REPLY_TOKENS));
        let mut asking = ChunkCall {
            target,
            max_reply_tokens: answer,
            deadline: Instant::now() + EXTRACTION_TIMEOUT,
            cancel,
            may_retry: !self.single_attempt,
        };
        let (mut found, mut known, mut why) = (ExtractedItems::default(), self.working_set.clone(), None);
        let message = |number: usize| self.parse_message(number);
        let (mut from, end) = (self.range.start, self.range.end);
        let (mut pieces, mut measured) = (MAX_CHUNKS, 0);
        while from < end {
            if measured != room {
                let begin = start_of_newest(from..end, message, room, pieces);
                if begin > from {
                    let older = begin - from;
                    why = Some(format!("the {older} older messages exceed the limit for one extraction"));
                    self.apply_rules(from..begin, &mut found, &mut known).await;
                }
                (from, measured) = (begin, room);
            }
            // The remaining messages were generated by Chorus itself.
            let Some(piece) = build_chunk(from..end, message, &known, room) else { return (found, why) };
            let failed = match self.ask_with_retry(&mut asking, &piece).await {
                Ok(reply) if reply.stop == StopReason::MaxTokens && room > MIN_CHUNK_BYTES && !self.single_attempt => {
                    room = (room / CUT_REPLY_DIVISOR).max(MIN_CHUNK_BYTES);
                    continue;
                }
                Ok(reply) => match self.read_reply(&reply, &piece, &known) {
                    Ok(next) => {
                        next.clone().add_to(&mut known);
                        found.append(next);
                        (from, pieces) = (piece.next, pieces.saturating_sub(1));
                        continue;
                    }
                    Err(why) => format!("the model's reply {why}"),
                },
                Err(error) if error.class == ErrorClass::ContextTooLong && room > MIN_CHUNK_BYTES => {
                    room = (room / TOO_LONG_DIVISOR).max(MIN_CHUNK_BYTES);
                    continue;
                }
                Err(error) => error.message,
            };
            // A summary of half of the messages would be misleading.
            found.summary = None;
            if found.has_model_items() && !cancel.is_cancelled() {
                self.apply_rules(from..end, &mut found, &mut known).await;
            }
            return (found, Some(failed));
        }
        (found, why)
    }

    fn parse_message(&self, number: usize) -> Option<Message> {
        self.messages.get(number).and_then(|message| message.to_message().ok())
    }

    /// Adds the findings of rules in these messages.
    async fn apply_rules(&self, range: Range<usize>, found: &mut ExtractedItems, known: &mut WorkingSet) {
        let messages = self.messages.get(range).unwrap_or_default().to_vec();
        let before = known.clone();
        let next = chorus_runtime::spawn_blocking(move || {
            ExtractedItems::from(collect_findings(&messages, &before, FindingLimits::PER_COMPACTION))
        });
        let next = next.await.unwrap_or_default();
        next.clone().add_to(known);
        found.append(next);
    }

    fn read_reply(
        &self,
        reply: &Reply,
        piece: &TranscriptChunk,
        known: &WorkingSet,
    ) -> Result<ExtractedItems, &'static str> {
        match reply.stop {
            StopReason::Refused => return Err("is a refusal"),
            StopReason::MaxTokens => return Err("was cut off at the token limit"),
            _ => {}
        }
        let said = reply.structured_output().to_owned();
        let said = if self.settings.redact { self.registry.redactor.redact_truncated(said) } else { said };
        match parse_extraction(&said, piece, known) {
            // Some chunks are only small talk.
            Err("has no content") if said.contains('{') => Ok(ExtractedItems::default()),
            read => read,
        }
    }

    async fn ask_with_retry(&self, asking: &mut ChunkCall<'_>, piece: &TranscriptChunk) -> Result<Reply, CallError> {
        let error = match self.ask_once(asking, piece).await {
            Err(error) if asking.may_retry => error,
            called => return called,
        };
        let wait = self.registry.models.retry_delay(&error).filter(|wait| Instant::now() + *wait < asking.deadline);
        let Some(wait) = wait else { return Err(error) };
        asking.may_retry = false;
        tokio::select! {
            () = asking.cancel.cancelled() => Err(error),
            () = tokio::time::sleep(wait) => self.ask_once(asking, piece).await,
        }
    }

    async fn ask_once(&self, asking: &ChunkCall<'_>, piece: &TranscriptChunk) -> Result<Reply, CallError> {
        let Self { registry, settings, conversation, context_and_turn: (context, turn_id), .. } = *self;
        let ChunkCall { target, max_reply_tokens: answer, deadline: end, cancel, .. } = *asking;
        if let Err(failure) = registry.usage.check_limits(settings).await {
            return Err(CallError::new(ErrorClass::SpendCap, failure.message));
        }
        let at = registry.clock.now();
        let asked = NewMessage::text(Role::User, &*piece.text).complete(|| new_id().to_string(), at);
        let request = ModelRequest {
            messages: vec![asked],
            system: vec![SYSTEM.to_owned()],
            output_format: Some(&NOTES_SHAPE),
            max_tokens: u32::try_from(answer).unwrap_or(u32::MAX),
            ..ModelRequest::default()
        };
        let estimated = chorus_llm::tokens_of_request(&request);
        let traced = registry.traces.start_call(&request);
        let stop = cancel.child_token();
        let mut call = pin!(registry.models.call_structured(target, request, stop.clone()));
        let called = match tokio::time::timeout_at(end, &mut call).await {
            Ok(called) => called,
            Err(_) => {
                stop.cancel();
                // The cost is known only when the call has ended.
                call.await.map_err(|error| CallError { message: "the model timed out".to_owned(), ..error })
            }
        };
        let (kind, price) = (CallKind::Compaction, registry.models.price(target));
        let caller =
            ModelCallInfo { agent: settings, conversation, context, turn_id, kind, target, price, estimated, at };
        registry.traces.end_call(traced, &caller, &called, registry.clock.now());
        if let Some(row) = caller.to_row(&called) {
            registry.usage.record_call(row).await;
        }
        called
    }
}
