//! One call of a model: tries, until it has an answer or there is no sense in another.

use std::time::Duration;

use chorus_proto::Usage;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::{CallError, Class, Progress};
use super::models::Chance;
use super::output::{Hear, Output};
use super::patience::{Patience, Wait, note};
use super::providers::{Reader, Step, To, Translate, refused};
use super::reply::Reply;
use super::request::Request;
use super::retry::{self, Policy};
use super::sse::Cutter;
use super::transport::{Answer, Transport, Watch};
use crate::clock::Clock;
use crate::config::{Provider, Secret};
use crate::redact::Redactor;

/// The longest event that is taken: a whole answer may come as one.
const LONGEST_EVENT: usize = 16 << 20;

/// The longest answer that is kept, in bytes: text, thinking and parameters of calls. None of a model comes near it; a server
/// that never ends would fill the memory.
const LONGEST_ANSWER: usize = 12 << 20;

/// What a call needs.
pub struct Call<'a> {
    pub transport: Transport,
    pub provider: &'a Provider,
    pub key: Option<Secret>,
    pub model: &'a str,
    pub request: &'a Request,
    pub hear: Hear<'a>,
    pub policy: Policy,
    pub chance: &'a Chance,
    pub clock: &'a Clock,
    pub redactor: &'a Redactor,
}

/// One try, as far as it has come.
#[derive(Default)]
struct Try {
    /// A part of the answer was handed out.
    handed: bool,
    progress: Progress,
}

impl Call<'_> {
    /// Calls until there is an answer. Nothing is tried again once a part of an answer was handed out.
    ///
    /// # Errors
    /// Why there is none, with what had arrived of it.
    pub async fn run(self, translate: &dyn Translate, cancel: &CancellationToken) -> Result<Reply, CallError> {
        let started = Instant::now();
        let total = started + self.provider.limits.total;
        let mut attempt = 1;
        // Whoever has one try only decides on another on their own.
        let patience = if self.policy.tries > 1 { self.provider.limits.start } else { Duration::ZERO };
        let mut patience = Patience::new(patience);
        let mut progress = Progress::Unsent;
        loop {
            let mut reader = translate.reader(&self.to());
            let mut this = Try::default();
            let tried = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(CallError::cancelled()),
                tried = self.once(translate, &mut *reader, &mut this, total) => tried,
            };
            let error = match tried.and_then(|()| reader.reply()) {
                Ok(mut reply) => {
                    reply.usage.duration_ms = Some(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
                    return Ok(reply);
                }
                Err(error) => {
                    let counted = Some(reader.usage()).filter(|usage| *usage != Usage::default());
                    let partial = reader.text().to_owned();
                    if let Progress::Taken { received } = &mut this.progress {
                        *received = reader.held() as u64;
                    }
                    progress = progress.max(this.progress);
                    self.clean(CallError { partial, usage: counted.map(Box::new), progress, ..error })
                }
            };
            if !this.handed && patience.covers(&error) {
                let now = self.clock.ticks();
                match patience.wait(now, (self.chance)()) {
                    Some(wait) if Instant::now() < total => {
                        let waited = self.stand_by(&wait, &error, cancel).await;
                        waited.map_err(|cancelled| CallError { progress, ..cancelled })?;
                        continue;
                    }
                    _ => {
                        let waited = patience.waited(now).as_secs();
                        return Err(CallError { message: format!("{} (waited {waited} s)", error.message), ..error });
                    }
                }
            }
            let wait = if this.handed { None } else { self.policy.wait(&error, attempt, (self.chance)()) };
            match wait {
                Some(wait) if Instant::now() + wait < total => {
                    attempt += 1;
                    let paused = self.pause(attempt, wait, &error, cancel).await;
                    paused.map_err(|cancelled| CallError { progress, ..cancelled })?;
                }
                _ => return Err(self.last(error, attempt)),
            }
        }
    }

    fn to(&self) -> To<'_> {
        let images = self.request.has_images();
        To { provider: self.provider, key: self.key.as_ref(), model: self.model, images }
    }

    /// One try: everything that comes goes into `reader`, and what is worth showing into the outputs.
    async fn once(
        &self,
        translate: &dyn Translate,
        reader: &mut dyn Reader,
        this: &mut Try,
        total: Instant,
    ) -> Result<(), CallError> {
        let mut watch = Watch::new(self.provider.limits, total);
        let ask = translate.ask(&self.to(), self.request)?;
        // Also where it is cancelled before a word comes: a prompt may take long to read.
        this.progress = Progress::Taken { received: 0 };
        let sent = self.transport.send(ask, &watch).await;
        let mut answer = sent.inspect_err(|error| this.progress = error.progress)?;
        if !(200..300).contains(&answer.status) {
            this.progress = Progress::Refused;
            return Err(self.refused(answer, &watch).await);
        }
        let kind = answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/html") {
            return Err(self.malformed("a web page".into()).hint("check `base_url` in config.toml"));
        }
        if kind.starts_with("application/json") {
            let body = answer.body(LONGEST_EVENT, &watch).await?;
            let mut out = Vec::new();
            let read = reader.whole(&body, &mut out);
            self.hand_out(&mut out, this);
            return read;
        }
        let mut cutter = Cutter::new(LONGEST_EVENT);
        let mut out = Vec::new();
        while let Some(piece) = answer.piece(&watch).await? {
            cutter.push(&piece);
            while let Some(event) = cutter.cut().map_err(|e| self.malformed(e.to_string()))? {
                let step = reader.event(&event, &mut out);
                self.hand_out(&mut out, this);
                if reader.held() > LONGEST_ANSWER {
                    let most = LONGEST_ANSWER >> 20;
                    let error =
                        self.malformed(format!("an answer of more than {most} MiB; the rest was not waited for"));
                    return Err(error.hint("what came is kept; use another model if it stays"));
                }
                match step? {
                    Step::Ping => {}
                    Step::More => watch.moved(),
                    Step::End => {
                        answer.leave();
                        return Ok(());
                    }
                }
            }
        }
        if let Some(event) = cutter.rest() {
            // What cannot be read here was cut off, and says so below.
            let step = reader.event(&event, &mut out);
            self.hand_out(&mut out, this);
            if matches!(step, Ok(Step::End)) {
                return Ok(());
            }
        }
        if reader.may_end() {
            return Ok(());
        }
        let what = format!("the answer of {} ended in the middle", self.provider.name);
        Err(CallError::new(Class::Network, what).hint("try again; what had arrived is kept as interrupted"))
    }

    fn hand_out(&self, out: &mut Vec<Output>, this: &mut Try) {
        for output in out.drain(..) {
            this.handed = true;
            (self.hear)(output);
        }
    }

    async fn refused(&self, answer: Answer, watch: &Watch) -> CallError {
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = answer.error_body(watch).await;
        let error = refused(&self.to(), status, &headers, &body);
        CallError { retry_after: retry::asked(&headers, self.clock.now()), ..error }
    }

    fn malformed(&self, what: String) -> CallError {
        CallError::new(Class::Malformed, format!("{} sent {what}", self.provider.name))
    }

    async fn pause(
        &self,
        attempt: u32,
        wait: Duration,
        error: &CallError,
        cancel: &CancellationToken,
    ) -> Result<(), CallError> {
        let (provider, why) = (&self.provider.name, &error.message);
        tracing::info!(%provider, model = self.model, attempt, ?wait, why, class = error.class.as_str(), "trying again");
        (self.hear)(Output::Retry { attempt, wait, why: why.clone() });
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::cancelled()),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    /// Waits for a server that is on its way up, and says so.
    async fn stand_by(&self, wait: &Wait, error: &CallError, cancel: &CancellationToken) -> Result<(), CallError> {
        let (provider, why) = (&self.provider.name, &error.message);
        tracing::info!(%provider, model = self.model, waited = ?wait.waited, why, "waiting for the server");
        (self.hear)(Output::Note(note(provider, error.class, wait.waited)));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::cancelled()),
            () = self.clock.sleep_until(wait.until) => Ok(()),
        }
    }

    /// Without the key, which a server may have said back, and other secrets: for the caller, the log and who listens.
    fn clean(&self, error: CallError) -> CallError {
        let message = self.key.as_ref().map(|key| key.scrub(&error.message));
        let message = message.as_deref().unwrap_or(&error.message);
        CallError { message: self.redactor.message(message), ..error }
    }

    /// The error that the caller gets.
    fn last(&self, mut error: CallError, attempts: u32) -> CallError {
        if let Some(asked) = self.policy.too_long(&error) {
            let asked = humantime::format_duration(Duration::from_secs(asked.as_secs()));
            error.hint =
                Some(format!("{} asks to wait {asked}; try again then, or use another model", self.provider.name));
        } else if attempts > 1 {
            error.message = format!("{} (tried {attempts} times)", error.message);
        }
        error
    }
}
