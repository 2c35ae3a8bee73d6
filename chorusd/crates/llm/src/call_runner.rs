//! Runs a model call: makes attempts until there is a reply or another attempt is useless.

use std::time::Duration;

use chorus_base::Secret;
use chorus_clock::Clock;
use chorus_config::Provider;
use chorus_proto::Usage;
use chorus_redact::Redactor;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::{CallError, CallProgress, ErrorClass};
use super::model_client::RandomFraction;
use super::providers::{ParseStep, ProviderProtocol, ReplyParser, RequestTarget, refusal_error};
use super::reply::Reply;
use super::request::ModelRequest;
use super::retry::{self, RetryPolicy};
use super::sse::SseParser;
use super::startup_wait::{NextWait, StartupWait, waiting_note};
use super::stream_event::{StreamEvent, StreamListener};
use super::transport::{AttemptDeadline, HttpResponse, Transport};

/// Limit of an event in bytes: a complete reply may come as one event.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Limit of a reply in bytes: text, thinking and parameters of tool calls. No model comes near it, but a server that
/// never stops would exhaust the memory.
const MAX_REPLY_BYTES: usize = 12 << 20;

/// Everything that a call needs.
pub(crate) struct ModelCall<'a> {
    pub transport: Transport,
    pub provider: &'a Provider,
    pub key: Option<Secret>,
    pub model: &'a str,
    pub request: &'a ModelRequest,
    pub listener: StreamListener<'a>,
    pub policy: RetryPolicy,
    pub chance: &'a RandomFraction,
    pub clock: &'a Clock,
    pub redactor: &'a Redactor,
}

/// State of one attempt.
#[derive(Default)]
struct Attempt {
    /// Whether stream events were passed on.
    has_emitted: bool,
    progress: CallProgress,
}

impl ModelCall<'_> {
    /// Makes attempts until there is a reply. Does not retry once stream events were passed on.
    ///
    /// # Errors
    /// The reason why there is no reply, with the part that had arrived.
    pub(crate) async fn run(
        self,
        translate: &dyn ProviderProtocol,
        cancel: &CancellationToken,
    ) -> Result<Reply, CallError> {
        let started = Instant::now();
        let total = started + self.provider.limits.total;
        let mut attempt = 1;
        // A caller with a single attempt decides on further ones itself.
        let patience = if self.policy.max_attempts > 1 { self.provider.limits.start } else { Duration::ZERO };
        let mut patience = StartupWait::new(patience);
        let mut progress = CallProgress::Unsent;
        loop {
            let mut reader = translate.reply_parser(&self.target());
            let mut this = Attempt::default();
            let tried = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(CallError::cancelled()),
                tried = self.run_attempt(translate, &mut *reader, &mut this, total) => tried,
            };
            let error = match tried.and_then(|()| reader.finish()) {
                Ok(mut reply) => {
                    reply.usage.duration_ms = Some(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
                    return Ok(reply);
                }
                Err(error) => {
                    let counted = Some(reader.usage()).filter(|usage| *usage != Usage::default());
                    let partial = reader.text().to_owned();
                    if let CallProgress::Accepted { received } = &mut this.progress {
                        *received = reader.held_bytes() as u64;
                    }
                    progress = progress.max(this.progress);
                    self.redact_error(CallError { partial, usage: counted.map(Box::new), progress, ..error })
                }
            };
            if !this.has_emitted && patience.applies_to(&error) {
                let now = self.clock.ticks();
                match patience.next_wait(now, (self.chance)()) {
                    Some(wait) if Instant::now() < total => {
                        let waited = self.wait_for_startup(&wait, &error, cancel).await;
                        waited.map_err(|cancelled| CallError { progress, ..cancelled })?;
                        continue;
                    }
                    _ => {
                        let waited = patience.waited(now).as_secs();
                        return Err(CallError { message: format!("{} (waited {waited} s)", error.message), ..error });
                    }
                }
            }
            let wait = if this.has_emitted { None } else { self.policy.retry_delay(&error, attempt, (self.chance)()) };
            match wait {
                Some(wait) if Instant::now() + wait < total => {
                    attempt += 1;
                    let paused = self.wait_before_retry(attempt, wait, &error, cancel).await;
                    paused.map_err(|cancelled| CallError { progress, ..cancelled })?;
                }
                _ => return Err(self.final_error(error, attempt)),
            }
        }
    }

    fn target(&self) -> RequestTarget<'_> {
        let images = self.request.has_images();
        RequestTarget { provider: self.provider, key: self.key.as_ref(), model: self.model, images }
    }

    /// Makes one attempt: feeds everything that arrives into `reader`, and passes stream events on.
    async fn run_attempt(
        &self,
        translate: &dyn ProviderProtocol,
        reader: &mut dyn ReplyParser,
        this: &mut Attempt,
        total: Instant,
    ) -> Result<(), CallError> {
        let mut watch = AttemptDeadline::new(self.provider.limits, total);
        let ask = translate.build_request(&self.target(), self.request)?;
        // Set this before sending, because a cancelled request may have been accepted: reading a prompt may take long.
        this.progress = CallProgress::Accepted { received: 0 };
        let sent = self.transport.send(ask, &watch).await;
        let mut answer = sent.inspect_err(|error| this.progress = error.progress)?;
        if !(200..300).contains(&answer.status) {
            this.progress = CallProgress::Rejected;
            return Err(self.refusal_error(answer, &watch).await);
        }
        let kind = answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/html") {
            return Err(self.malformed_error("a web page".into()).hint("check `base_url` in config.toml"));
        }
        if kind.starts_with("application/json") {
            let body = answer.body(MAX_EVENT_BYTES, &watch).await?;
            let mut out = Vec::new();
            let read = reader.push_body(&body, &mut out);
            self.emit(&mut out, this);
            return read;
        }
        let mut cutter = SseParser::new(MAX_EVENT_BYTES);
        let mut out = Vec::new();
        while let Some(piece) = answer.next_chunk(&watch).await? {
            cutter.push(&piece);
            while let Some(event) = cutter.next_event().map_err(|e| self.malformed_error(e.to_string()))? {
                let step = reader.push_event(&event, &mut out);
                self.emit(&mut out, this);
                if reader.held_bytes() > MAX_REPLY_BYTES {
                    let most = MAX_REPLY_BYTES >> 20;
                    let error = self.malformed_error(format!("the reply exceeded {most} MiB and was cut off"));
                    return Err(error.hint("the partial reply was kept; if this happens again, use another model"));
                }
                match step? {
                    ParseStep::Ping => {}
                    ParseStep::More => watch.extend(),
                    ParseStep::End => {
                        answer.drain_in_background();
                        return Ok(());
                    }
                }
            }
        }
        if let Some(event) = cutter.finish() {
            // An event that cannot be parsed here was truncated, which is reported below.
            let step = reader.push_event(&event, &mut out);
            self.emit(&mut out, this);
            if matches!(step, Ok(ParseStep::End)) {
                return Ok(());
            }
        }
        if reader.is_complete() {
            return Ok(());
        }
        let what = format!("the reply of {} ended unexpectedly", self.provider.name);
        Err(CallError::new(ErrorClass::Network, what).hint("try again; the partial reply was kept as interrupted"))
    }

    fn emit(&self, out: &mut Vec<StreamEvent>, this: &mut Attempt) {
        for output in out.drain(..) {
            this.has_emitted = true;
            (self.listener)(output);
        }
    }

    async fn refusal_error(&self, answer: HttpResponse, watch: &AttemptDeadline) -> CallError {
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = answer.error_body(watch).await;
        let error = refusal_error(&self.target(), status, &headers, &body);
        CallError { retry_after: retry::parse_retry_after(&headers, self.clock.now()), ..error }
    }

    fn malformed_error(&self, what: String) -> CallError {
        CallError::new(ErrorClass::Malformed, format!("{} sent {what}", self.provider.name))
    }

    async fn wait_before_retry(
        &self,
        attempt: u32,
        wait: Duration,
        error: &CallError,
        cancel: &CancellationToken,
    ) -> Result<(), CallError> {
        let (provider, why) = (&self.provider.name, &error.message);
        tracing::info!(%provider, model = self.model, attempt, ?wait, why, class = error.class.as_str(), "trying again");
        (self.listener)(StreamEvent::Retry { attempt, wait, why: why.clone() });
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::cancelled()),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    /// Waits for a server that is starting, and notifies the listener.
    async fn wait_for_startup(
        &self,
        wait: &NextWait,
        error: &CallError,
        cancel: &CancellationToken,
    ) -> Result<(), CallError> {
        let (provider, why) = (&self.provider.name, &error.message);
        tracing::info!(%provider, model = self.model, waited = ?wait.waited, why, "waiting for the server");
        (self.listener)(StreamEvent::Note(waiting_note(provider, error.class, wait.waited)));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::cancelled()),
            () = self.clock.sleep_until(wait.until) => Ok(()),
        }
    }

    /// Redacts the key, which a server may have echoed, and other secrets, since the caller, the log and the listener
    /// see the message.
    fn redact_error(&self, error: CallError) -> CallError {
        let message = self.key.as_ref().map(|key| key.scrub(&error.message));
        let message = message.as_deref().unwrap_or(&error.message);
        CallError { message: self.redactor.redact_message(message), ..error }
    }

    /// Completes the error that is returned to the caller.
    fn final_error(&self, mut error: CallError, attempts: u32) -> CallError {
        if let Some(asked) = self.policy.excessive_retry_after(&error) {
            let asked = humantime::format_duration(Duration::from_secs(asked.as_secs()));
            error.hint = Some(format!(
                "{} requests a wait of {asked}; try again later, or use another model",
                self.provider.name
            ));
        } else if attempts > 1 {
            error.message = format!("{} (tried {attempts} times)", error.message);
        }
        error
    }
}
