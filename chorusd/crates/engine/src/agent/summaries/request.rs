//! One request for a summary: at most two attempts.

use chorus_agent_core::AgentSettings;
use chorus_base::new_id;
use chorus_llm::{CallError, ErrorClass, ModelRef, ModelRequest, StopReason};
use chorus_proto::{NewMessage, Role};
use chorus_session::stored_message::{StoredMessage, Totals};
use chorus_session::summary::{ModelSummary, parse_summary, summary_prompt};
use tokio_util::sync::CancellationToken;

use super::{Summaries, SummaryInput};
use crate::agent::redacted_stream;
use crate::usage::{CallKind, ModelCallInfo};

/// The system prompt of the request.
const SYSTEM: &str = "You write short, factual summaries of conversations that others had.";

/// Maximum tokens of the reply. Some models think aloud first.
const MAX_REPLY_TOKENS: u32 = 1024;

/// Bytes of the transcript for a model of unknown context length.
const DEFAULT_TRANSCRIPT_BYTES: usize = 24 << 10;

/// Bytes of the largest and the smallest transcript.
const MAX_TRANSCRIPT_BYTES: usize = 48 << 10;
const MIN_TRANSCRIPT_BYTES: usize = 2 << 10;

/// Divisor of the transcript's bytes after the model refused it as too long.
const TOO_LONG_DIVISOR: usize = 4;

/// A request for one summary.
pub(super) struct SummaryRequest<'a> {
    pub summaries: &'a Summaries,
    pub settings: &'a AgentSettings,
    pub source: Box<SummaryInput>,
    /// Cancels the request.
    pub stop: CancellationToken,
}

/// The outcome of a request.
pub(super) enum RequestOutcome {
    Answered {
        answer: ModelSummary,
        source: Box<SummaryInput>,
    },
    /// The model could not be called, or a usage limit was reached.
    Failed,
    /// The model's reply is no summary.
    Unusable,
    /// There is no model, or nothing to summarise.
    Skipped,
    /// The daemon stops.
    Stopped,
}

/// The result of one attempt.
enum AttemptResult {
    Done(ModelSummary),
    Unusable,
    /// It failed; another attempt may succeed.
    Retry,
    /// The transcript was too long; a shorter one may succeed.
    RetryShorter,
    Failed,
    Stopped,
}

impl SummaryRequest<'_> {
    /// Makes the request, with a second attempt if that may help.
    pub(super) async fn run(mut self) -> RequestOutcome {
        let model = self.settings.model.as_deref().or(self.source.header.model.as_deref());
        let Some(Ok(target)) = model.map(|model| self.summaries.models.resolve(model)) else {
            return RequestOutcome::Skipped;
        };
        let room = self.transcript_bytes(&target);
        let messages = std::mem::take(&mut self.source.messages);
        let said = Totals::count(&messages).chars;
        let text = |room| summary_prompt(messages.len(), |number| messages[number].to_message().ok(), room);
        let Some(mut asked) = text(room) else { return RequestOutcome::Skipped };
        let shorter = text(room / TOO_LONG_DIVISOR).unwrap_or_default();
        // Free the messages: they may be large, and the model takes its time.
        drop::<Vec<StoredMessage>>(messages);
        let mut last = RequestOutcome::Failed;
        for more in [true, false] {
            if let Err(failure) = self.summaries.usage.check_limits(self.settings).await {
                tracing::info!(agent = %self.settings.name, %failure, "cannot ask a model for a summary");
                return last;
            }
            match self.attempt(&target, &asked, said, more).await {
                AttemptResult::Done(answer) => return RequestOutcome::Answered { answer, source: self.source },
                AttemptResult::Unusable => last = RequestOutcome::Unusable,
                AttemptResult::Retry => {}
                AttemptResult::RetryShorter => asked.clone_from(&shorter),
                AttemptResult::Failed => return last,
                AttemptResult::Stopped => return RequestOutcome::Stopped,
            }
        }
        last
    }

    /// Returns the bytes of transcript that fit into half the model's context length, at three bytes per token.
    fn transcript_bytes(&self, target: &ModelRef) -> usize {
        let window = self.summaries.models.context_length(target).and_then(|tokens| usize::try_from(tokens).ok());
        window.map_or(DEFAULT_TRANSCRIPT_BYTES, |tokens| {
            (tokens / 2).saturating_mul(3).clamp(MIN_TRANSCRIPT_BYTES, MAX_TRANSCRIPT_BYTES)
        })
    }

    async fn attempt(&self, target: &ModelRef, text: &str, said: u64, more: bool) -> AttemptResult {
        let (settings, at) = (self.settings, self.summaries.clock.now());
        let message = NewMessage::text(Role::User, text).complete(|| new_id().to_string(), at);
        let request = ModelRequest {
            messages: vec![message],
            system: vec![SYSTEM.to_owned()],
            max_tokens: MAX_REPLY_TOKENS,
            ..ModelRequest::default()
        };
        let traced = self.summaries.traces.start_call(&request);
        let called = self.summaries.models.call_once(target, &request, self.stop.clone()).await;
        let estimated = chorus_llm::tokens_of_request(&request);
        let (kind, price) = (CallKind::Summary, self.summaries.models.price(target));
        let conversation = self.source.header.conversation.as_ref().map(|conversation| conversation.id);
        let caller = ModelCallInfo {
            agent: settings,
            conversation,
            context: None,
            turn_id: None,
            kind,
            target,
            price,
            estimated,
            at,
        };
        self.summaries.traces.end_call(traced, &caller, &called, self.summaries.clock.now());
        if let Some(row) = caller.to_row(&called) {
            self.summaries.usage.record_call(row).await;
        }
        let called =
            called.map(|reply| redacted_stream::redact_reply_text(reply, self.settings, &self.summaries.redactor));
        match called {
            Ok(reply) => {
                let read = match reply.stop {
                    StopReason::Refused => Err("is a refusal"),
                    stop => parse_summary(&reply.content, said, stop != StopReason::MaxTokens),
                };
                read.map_or_else(
                    |why| {
                        tracing::info!(agent = %settings.name, model = %target, "the model's reply {why}; not a usable summary");
                        AttemptResult::Unusable
                    },
                    AttemptResult::Done,
                )
            }
            Err(error) => self.on_error(&error, more).await,
        }
    }

    /// Decides what follows a failed call; waits if there will be another attempt.
    async fn on_error(&self, error: &CallError, more: bool) -> AttemptResult {
        if error.class == ErrorClass::Cancelled {
            return AttemptResult::Stopped;
        }
        tracing::warn!(agent = %self.settings.name, class = error.class.as_str(), %error, "summary request failed");
        match (error.class, self.summaries.models.retry_delay(error)) {
            (ErrorClass::ContextTooLong, _) => AttemptResult::RetryShorter,
            (_, Some(wait)) if more => tokio::select! {
                biased;
                () = self.stop.cancelled() => AttemptResult::Stopped,
                () = tokio::time::sleep(wait) => AttemptResult::Retry,
            },
            _ => AttemptResult::Failed,
        }
    }
}
