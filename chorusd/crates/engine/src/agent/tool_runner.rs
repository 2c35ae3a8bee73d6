//! Runs the tool calls of one reply: in parallel, or one after the other if one of them needs an approval.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use chorus_agent_core::effect::PlannedCall;
use chorus_agent_core::event::{Event, ToolEnded};
use chorus_agent_core::tool_budget::{CircuitBreaker, SKIPPED_CALL_ERROR};
use chorus_base::error::Error;
use chorus_base::requester::Requester;
use chorus_journal::NewEvent;
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::tool_gist;
use chorus_proto::{EventType, ToolCall};
use chorus_session::conversation::ConversationKey;
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::checkpoint_on_save::works_in_worktree;
use super::model_call::current_moment;
use super::registry::Registry;
use super::turn_io::{ConversationTurn, TurnIo};
use crate::tools::{self, ToolContext, ToolOutcome, WorkingDirectory, worktree};

/// Maximum characters of a tool's error in an event.
const MAX_ERROR_CHARS: usize = 300;

/// Runs the tool calls of one reply.
#[derive(Debug, Clone)]
pub(super) struct ToolRunner {
    pub registry: Arc<Registry>,
    pub conversation: ConversationKey,
    /// The agent's name.
    pub name: String,
    /// The conversation's name; `None` for `main`.
    pub conversation_name: Option<String>,
    /// The turn and the step.
    pub turn_step: (Uuid, u32),
    /// Id of the message that has the calls.
    pub message: Option<String>,
    /// Number of the last message of the context, which each result increases.
    pub last_number: Arc<AtomicU64>,
    /// The requester of the turn.
    pub requester: Requester,
    pub turn: TurnIo,
}

/// The outcome of a call.
#[derive(Debug)]
struct CallOutcome {
    outcome: ToolOutcome,
    /// The call was not started, because too many before it had failed.
    skipped: bool,
}

/// A call, its index in the reply, and the channel for its outcome.
#[derive(Debug)]
struct PendingCall {
    index: usize,
    planned: PlannedCall,
    outcome_sender: oneshot::Sender<CallOutcome>,
}

impl ToolRunner {
    /// Starts the calls and returns for each a future that completes with it.
    pub(super) fn start_calls(
        self,
        calls: Vec<PlannedCall>,
        breaker: CircuitBreaker,
    ) -> Vec<BoxFuture<'static, Event>> {
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        for (at, planned) in calls.into_iter().enumerate() {
            let (tell, told) = oneshot::channel();
            ended.push(self.clone().wait_for_call(at, planned.call.clone(), told).boxed());
            begun.push(PendingCall { index: at, planned, outcome_sender: tell });
        }
        chorus_runtime::spawn(self.run_calls(begun, breaker));
        ended
    }

    /// Starts the calls in order. No more of them run in parallel than may still fail in a row, and none is started
    /// after that many failures. Calls that take no time are waited for, so that later calls see their effects. If any
    /// of the calls needs an approval, each is waited for: people answer one question at a time, and see the outcome of
    /// the calls before.
    async fn run_calls(self, calls: Vec<PendingCall>, mut breaker: CircuitBreaker) {
        let one_by_one = self.needs_approval(&calls).await;
        let mut run = FuturesUnordered::new();
        for begun in calls {
            while run.len() >= breaker.remaining_failures() as usize
                && let Some((_, failed)) = run.next().await
            {
                count_result(&mut breaker, failed);
            }
            let at = begun.index;
            let waits = one_by_one || tools::runs_in_order(&begun.planned.call.name);
            let skipped = breaker.remaining_failures() == 0 && !self.turn.cancel.is_cancelled();
            let batch = self.clone();
            // In a task of its own, so that a panic does not affect the other calls.
            let task = chorus_runtime::spawn(async move { batch.run_call(begun, skipped).await });
            run.push(task.map(move |failed| (at, failed.unwrap_or_default())));
            while waits && let Some((ended, failed)) = run.next().await {
                count_result(&mut breaker, failed);
                if ended == at {
                    break;
                }
            }
        }
    }

    /// Whether one of the calls needs an approval.
    async fn needs_approval(&self, calls: &[PendingCall]) -> bool {
        let calls = || calls.iter().filter(|begun| begun.planned.refusal.is_none());
        let uses_workspace = calls().any(|begun| tools::uses_workspace(&begun.planned.call.name));
        let Some(ctx) = self.tool_context(uses_workspace).await else { return false };
        for begun in calls() {
            if tools::needs_approval(&begun.planned.call, &ctx).await {
                return true;
            }
        }
        false
    }

    /// Runs a call. Returns whether it failed, or `None` if it was not started.
    async fn run_call(
        self,
        PendingCall { planned, outcome_sender: tell, .. }: PendingCall,
        skipped: bool,
    ) -> Option<bool> {
        let call = planned.call.clone();
        let skipped = skipped && planned.refusal.is_none();
        let refused = planned.refusal.or(skipped.then_some(SKIPPED_CALL_ERROR));
        let begins = refused.is_none();
        let start = self.registry.clock.now();
        self.announce_start(&call);
        let outcome = std::panic::AssertUnwindSafe(self.execute_call(PlannedCall { refusal: refused, ..planned }))
            .catch_unwind()
            .await;
        let outcome = self.announce_end(&call, outcome.unwrap_or_else(|_| panic_outcome()), start);
        if matches!(outcome, ToolOutcome::Stop(_)) {
            self.turn.cancel.cancel();
        }
        let failed = !matches!(outcome, ToolOutcome::Completed { is_error: false, .. });
        let _ = tell.send(CallOutcome { outcome, skipped });
        begins.then_some(failed)
    }

    async fn execute_call(&self, planned: PlannedCall) -> ToolOutcome {
        if let Some(why) = planned.refusal {
            return ToolOutcome::error(why);
        }
        match self.tool_context(tools::uses_workspace(&planned.call.name)).await {
            Some(ctx) if !self.turn.cancel.is_cancelled() => tools::execute_call(planned.call, Arc::new(ctx)).await,
            _ => ToolOutcome::error("the turn was cancelled before this call ran"),
        }
    }

    /// Announces the start of a call, before its approval.
    fn announce_start(&self, call: &ToolCall) {
        self.emit_event(EventType::ToolStarted, json!({"turn_id": self.turn_step.0, "id": call.id, "name": call.name}));
        let gist = tool_gist::gist(call);
        let gist = if self.redacts() { self.registry.redactor.redact_text(&gist).into_owned() } else { gist };
        let gist = Some(gist).filter(|gist| !gist.is_empty());
        self.turn.sinks.send(&TurnEvent::Tool { id: call.id.clone(), name: call.name.clone(), gist });
    }

    /// Redacts the outcome of a call and announces its end, before the next call starts.
    fn announce_end(&self, call: &ToolCall, outcome: ToolOutcome, start: Timestamp) -> ToolOutcome {
        let redacts = self.redacts();
        let outcome = outcome.redacted(&self.registry.redactor, redacts);
        let turn = (self.conversation, &*self.name, self.turn_step.0);
        self.registry.traces.record_tool_call(turn, call, &outcome, (start, self.registry.clock.now()));
        let wrong = match &outcome {
            ToolOutcome::Completed { is_error: false, .. } => None,
            ToolOutcome::Completed { text, .. } => Some(text),
            ToolOutcome::Stop(failure) => Some(&failure.message),
        };
        let is_error = wrong.is_some();
        let mut data = json!({"turn_id": self.turn_step.0, "id": call.id, "name": call.name, "is_error": is_error});
        if let Some(line) = wrong.and_then(|text| text.lines().find(|line| !line.trim().is_empty())) {
            data["error"] = line.chars().take(MAX_ERROR_CHARS).collect::<String>().into();
        }
        self.emit_event(EventType::ToolFinished, data);
        let mut output = tool_gist::output_head(call, outcome.text(), is_error);
        if let Some(diff) = output.diff.as_mut().filter(|_| redacts) {
            *diff = self.registry.redactor.redact_text(diff).into_owned();
        }
        let output = Some(Box::new(output));
        // Results are recorded in the order in which calls end.
        let message = Some(self.last_number.fetch_add(1, Ordering::Relaxed) + 1);
        let (id, name) = (call.id.clone(), call.name.clone());
        self.turn.sinks.send(&TurnEvent::Result { id, name, is_error, output, message });
        outcome
    }

    /// Returns whether the agent has secrets redacted.
    fn redacts(&self) -> bool {
        self.registry.agents.by_id(self.conversation.agent).is_none_or(|entry| entry.settings.redact)
    }

    /// Emits an event to observers, without waiting for it.
    fn emit_event(&self, kind: EventType, data: Value) {
        let (at, agent) = (self.registry.clock.now(), Some(self.name.clone()));
        let conversation = self.conversation_name.clone();
        drop(self.registry.store.journal.emit(vec![NewEvent { at, kind, agent, conversation, data }]));
    }

    /// Returns the tool context as of now. The agent's permission profile may change between two calls. If the tool uses the
    /// workspace, creates the worktree of a conversation that is to have one.
    async fn tool_context(&self, uses_workspace: bool) -> Option<ToolContext> {
        let settings = self.registry.agents.by_id(self.conversation.agent)?.settings.clone();
        let (sinks, directory, agent) =
            (self.turn.sinks.clone(), self.registry.agents.clone(), self.conversation.agent);
        let has_worktree = uses_workspace && works_in_worktree(&settings, self.conversation);
        let mut ctx = ToolContext {
            agent: settings.id,
            conversation: self.conversation,
            conversation_name: self.conversation_name.clone(),
            agent_name: settings.name.clone(),
            project: settings.project.clone(),
            dir: settings.dir.clone(),
            files_dir: settings.files_dir().to_owned(),
            place: WorkingDirectory::Workspace,
            turn: self.turn_step.0,
            message: self.message.clone(),
            requester: self.requester.clone(),
            profile: settings.profile.clone().unwrap_or_default(),
            mcp_servers: settings.mcp.clone(),
            current_profile: Box::new(move || directory.by_id(agent)?.settings.profile.clone().ok()),
            redactor: settings.redact.then(|| self.registry.redactor.clone()),
            cancel: self.turn.cancel.clone(),
            pausable_turn: Some(Arc::new(ConversationTurn {
                turn: self.turn.clone(),
                registry: self.registry.clone(),
                conversation: self.conversation,
            })),
            approved_target: OnceLock::new(),
            emit_event: Box::new(move |event| sinks.send(&event)),
            services: self.registry.tools.clone(),
        };
        if has_worktree {
            ctx.place = worktree::prepare(&ctx).await;
        }
        Some(ctx)
    }

    async fn wait_for_call(self, at: usize, call: ToolCall, told: oneshot::Receiver<CallOutcome>) -> Event {
        let CallOutcome { outcome, skipped } =
            told.await.unwrap_or_else(|_| CallOutcome { outcome: panic_outcome(), skipped: false });
        let (of, moment) = (self.turn_step, current_moment(&self.registry));
        let (text, is_error, stop) = match outcome {
            ToolOutcome::Completed { text, is_error } => (text, is_error, None),
            ToolOutcome::Stop(failure) => (failure.message.clone(), true, Some(failure)),
        };
        match tools::tool_result_message(&call, text, is_error, moment.now) {
            Ok(result) => Event::ToolEnded(Box::new(ToolEnded {
                turn_step: of,
                moment,
                call_index: at,
                result,
                is_error,
                skipped,
                fatal: stop,
            })),
            Err(e) => Event::TurnClosed { turn: of.0, moment, result: Err(Error::internal(e.to_string())) },
        }
    }
}

/// Records the result of a call, if it was started.
fn count_result(breaker: &mut CircuitBreaker, failed: Option<bool>) {
    if let Some(failed) = failed {
        breaker.record_result(failed);
    }
}

/// Returns the outcome of a tool that panicked.
fn panic_outcome() -> ToolOutcome {
    ToolOutcome::error("the tool failed unexpectedly")
}
