//! Asking a model for one summary: at most twice.

use chorus_proto::{NewMessage, Role};
use tokio_util::sync::CancellationToken;

use super::{Source, Summaries};
use crate::agent::{Facts, redacted};
use crate::clock::new_id;
use crate::estimate;
use crate::llm::{CallError, Class, Request, Stop, Target};
use crate::message::{Stored, Totals};
use crate::summary::{Answer, answer, question};
use crate::usage::{CallKind, Caller};

/// What the model is told that it is.
const SYSTEM: &str = "You write short, factual summaries of conversations that others had.";

/// The longest answer, in tokens: some models think aloud first.
const ANSWER: u32 = 1024;

/// Bytes of a transcript for a model whose window is not known.
const USUAL: usize = 24 << 10;

/// Bytes of the longest and the shortest transcript.
const MOST: usize = 48 << 10;
const LEAST: usize = 2 << 10;

/// A model that takes less than was thought is asked again with so much less.
const LESS: usize = 4;

/// One summary to ask for.
pub struct Ask<'a> {
    pub all: &'a Summaries,
    pub facts: &'a Facts,
    pub source: Box<Source>,
    /// Ends it.
    pub stop: CancellationToken,
}

/// What came of it.
pub enum Outcome {
    Answered {
        answer: Answer,
        source: Box<Source>,
    },
    /// The model could not be called, or not any more today.
    Failed,
    /// Nothing that it said can be used.
    Unusable,
    /// There is nothing to ask, or nobody.
    LeftAlone,
    /// The daemon stops.
    Stopped,
}

/// What follows a call.
enum Next {
    Done(Answer),
    Unusable,
    /// It failed; another try may help.
    Again,
    /// It was too long: less may help.
    Shorter,
    Failed,
    Stopped,
}

impl Ask<'_> {
    /// Asks, and once more where that may help.
    pub async fn run(mut self) -> Outcome {
        let model = self.facts.model.as_deref().or(self.source.header.model.as_deref());
        let Some(Ok(target)) = model.map(|model| self.all.models.resolve(model)) else { return Outcome::LeftAlone };
        let room = self.room(&target);
        let messages = std::mem::take(&mut self.source.messages);
        let said = Totals::of(&messages).chars;
        let text = |room| question(messages.len(), |number| messages[number].to_message().ok(), room);
        let Some(mut asked) = text(room) else { return Outcome::LeftAlone };
        let shorter = text(room / LESS).unwrap_or_default();
        // They may be large, and a model takes its time.
        drop::<Vec<Stored>>(messages);
        let mut last = Outcome::Failed;
        for more in [true, false] {
            if let Err(failure) = self.all.usage.may_call(self.facts).await {
                tracing::info!(agent = %self.facts.name, %failure, "no model is asked for a summary");
                return last;
            }
            match self.once(&target, &asked, said, more).await {
                Next::Done(answer) => return Outcome::Answered { answer, source: self.source },
                Next::Unusable => last = Outcome::Unusable,
                Next::Again => {}
                Next::Shorter => asked.clone_from(&shorter),
                Next::Failed => return last,
                Next::Stopped => return Outcome::Stopped,
            }
        }
        last
    }

    /// Bytes of the transcript that fit into half the model's window, counting three to a token.
    fn room(&self, target: &Target) -> usize {
        let window = self.all.models.window_of(target).and_then(|tokens| usize::try_from(tokens).ok());
        window.map_or(USUAL, |tokens| (tokens / 2).saturating_mul(3).clamp(LEAST, MOST))
    }

    async fn once(&self, target: &Target, text: &str, said: u64, more: bool) -> Next {
        let (facts, at) = (self.facts, self.all.clock.now());
        let message = NewMessage::text(Role::User, text).complete(|| new_id().to_string(), at);
        let request = Request {
            messages: vec![message],
            system: vec![SYSTEM.to_owned()],
            max_tokens: ANSWER,
            ..Request::default()
        };
        let called = self.all.models.call_once(target, &request, self.stop.clone()).await;
        let estimated = estimate::request(&request);
        let (kind, price) = (CallKind::Summary, self.all.models.price_of(target));
        let caller = Caller { facts, context: None, turn_id: None, kind, target, price, estimated, at };
        if let Some(row) = caller.ended(&called) {
            self.all.usage.note(row).await;
        }
        let called = called.map(|reply| redacted::text_of(reply, self.facts, &self.all.models));
        match called {
            Ok(reply) => {
                let read = match reply.stop {
                    Stop::Refused => Err("is a refusal"),
                    stop => answer(&reply.content, said, stop != Stop::MaxTokens),
                };
                read.map_or_else(
                    |why| {
                        tracing::info!(agent = %facts.name, model = %target, "the model's answer {why}; it is no summary");
                        Next::Unusable
                    },
                    Next::Done,
                )
            }
            Err(error) => self.failed(&error, more).await,
        }
    }

    /// Waits as long as it takes for another try to have sense, where there may be one more.
    async fn failed(&self, error: &CallError, more: bool) -> Next {
        if error.class == Class::Cancelled {
            return Next::Stopped;
        }
        tracing::warn!(agent = %self.facts.name, class = error.class.as_str(), %error, "a model was asked for a summary in vain");
        match (error.class, self.all.models.patience(error)) {
            (Class::ContextTooLong, _) => Next::Shorter,
            (_, Some(wait)) if more => tokio::select! {
                biased;
                () = self.stop.cancelled() => Next::Stopped,
                () = tokio::time::sleep(wait) => Next::Again,
            },
            _ => Next::Failed,
        }
    }
}
