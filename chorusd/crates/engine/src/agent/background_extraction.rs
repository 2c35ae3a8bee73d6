//! Extracts notes from messages that have left a window, with the agent's model, in the background. Until the notes are
//! there, and if they never come, the findings of the rules stand in. Each window has one attempt.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chorus_agent_core::AgentSettings;
use chorus_agent_core::compaction::CompactionPlan;
use chorus_agent_core::compaction_extraction::ExtractionResult;
use chorus_agent_core::effect::CallModel;
use chorus_base::sync::Mutex;
use chorus_llm::ModelRef;
use chorus_proto::WorkingSet;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage, Totals};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::command;
use super::note_extraction::{Extraction, ExtractionOutcome, MIN_CHARS};
use super::registry::Registry;
use super::turn_priority::MAX_PREEMPTIONS;

/// Messages that have left a window and are to be extracted.
#[derive(Debug)]
pub(super) struct ExtractionJob {
    settings: Arc<AgentSettings>,
    context: ContextNo,
    turn: Uuid,
    plan: CompactionPlan,
    messages: Vec<StoredMessage>,
    working_set: WorkingSet,
    target: ModelRef,
}

impl ExtractionJob {
    /// Builds the job for a compaction of the window of `call`. Returns `None` if the messages are too short or the
    /// agent has no model.
    pub(super) fn for_plan(
        registry: &Registry,
        call: &CallModel,
        plan: &CompactionPlan,
    ) -> Result<Option<Self>, String> {
        let messages = call.messages.get(plan.from..plan.upto).unwrap_or_default();
        let model = call.settings.model.as_deref().filter(|_| Totals::count(messages).chars >= MIN_CHARS);
        let Some(model) = model else { return Ok(None) };
        let target = registry.models.resolve(model).map_err(|failure| failure.message)?;
        Ok(Some(Self {
            settings: call.settings.clone(),
            context: call.context,
            turn: call.turn,
            plan: plan.clone(),
            // Copied, because the conversation grows while the model works.
            messages: messages.to_vec(),
            working_set: call.working_set.clone(),
            target,
        }))
    }
}

/// The running extractions, by conversation.
#[derive(Debug, Default)]
pub(super) struct RunningExtractions(Mutex<HashMap<ConversationKey, CancellationToken>>);

impl RunningExtractions {
    /// Registers an extraction and cancels the conversation's earlier one.
    fn register(&self, conversation: ConversationKey, stop: &CancellationToken) -> CancellationToken {
        let token = stop.child_token();
        let before = self.0.lock().insert(conversation, token.clone());
        before.inspect(CancellationToken::cancel);
        token
    }
}

/// Extracts notes in the background, giving way to turns, and sends the result to the conversation.
pub(super) fn spawn_extraction(registry: &Arc<Registry>, conversation: ConversationKey, leaving: ExtractionJob) {
    let name = leaving.settings.name.clone();
    let stop = registry.extractions.register(conversation, registry.summaries.stop_token());
    let all = registry.clone();
    registry.spawn(async move {
        let Some(written) = run_extraction(&all, conversation, leaving, &stop).await else { return };
        if let Err(failure) = all.ask(conversation, command::apply_extraction(written)).await {
            tracing::warn!(agent = %name, %failure, "cannot apply the notes of a model");
        }
    });
}

/// Runs the extraction. Returns `None` if the daemon stops or a later extraction took its place.
async fn run_extraction(
    registry: &Registry,
    conversation: ConversationKey,
    leaving: ExtractionJob,
    stop: &CancellationToken,
) -> Option<ExtractionResult> {
    let ExtractionJob { settings, context, turn, plan, messages, working_set: known, target } = leaving;
    let tries = AtomicUsize::new(0);
    let ask = |cancel: CancellationToken| {
        let extraction = Extraction {
            registry,
            settings: &settings,
            conversation: conversation.stored_id(),
            context_and_turn: (Some(context), Some(turn)),
            messages: &messages,
            range: 0..messages.len(),
            working_set: &known,
            single_attempt: true,
        };
        let last = tries.fetch_add(1, Ordering::Relaxed) >= MAX_PREEMPTIONS;
        async move {
            if last {
                return Some(ExtractionOutcome::Failed("interrupted too often by new turns".to_owned()));
            }
            match extraction.run(cancel.clone()).await {
                ExtractionOutcome::Extracted(notes) if notes.fallback.is_none() => {
                    Some(ExtractionOutcome::Extracted(notes))
                }
                extracted => (!cancel.is_cancelled()).then_some(extracted),
            }
        }
    };
    let provider = registry.models.is_self_hosted(&target).then_some(&*target.provider);
    let notes = match registry.summaries.turn_priority.run_between_turns(provider, stop, ask).await? {
        ExtractionOutcome::Extracted(notes) => Ok(*notes),
        ExtractionOutcome::Failed(why) => Err(why),
        ExtractionOutcome::Skipped => return None,
    };
    Some(ExtractionResult { context, plan, notes })
}
