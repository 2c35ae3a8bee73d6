//! Notes of messages that have left a window, written down by the agent's model beside its turns. Rules stand in until they are
//! there, and for good where they do not come: each window has one try.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chorus_proto::WorkingSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Facts;
use super::compaction::Plan;
use super::effect::CallModel;
use super::event::Verb;
use super::extract::{Extracted, Extraction, LEAST_SAID};
use super::noted::WrittenDown;
use super::precedence::CUT_OFF;
use super::registry::Registry;
use crate::llm::Target;
use crate::message::{ContextNo, Stored, Totals};

/// What the receipt of a compaction says whose notes are not there yet.
pub const LATER: &str = "the model's notes are made beside the turn, and take their place";

/// What has left a window, and is to be written down.
#[derive(Debug)]
pub struct Leaving {
    facts: Arc<Facts>,
    context: ContextNo,
    turn: Uuid,
    plan: Plan,
    messages: Vec<Stored>,
    known: WorkingSet,
    target: Target,
}

impl Leaving {
    /// Returns what a compaction takes out of the window of `call`; `None` where no model is to be asked about it, and why not where
    /// it should.
    ///
    /// # Errors
    /// The model cannot be found.
    pub fn of(registry: &Registry, call: &CallModel, plan: &Plan) -> Result<Option<Self>, String> {
        let messages = call.messages.get(plan.from..plan.upto).unwrap_or_default();
        let model = call.facts.model.as_deref().filter(|_| Totals::of(messages).chars >= LEAST_SAID);
        let Some(model) = model else { return Ok(None) };
        let target = registry.models.resolve(model).map_err(|failure| failure.message)?;
        Ok(Some(Self {
            facts: call.facts.clone(),
            context: call.context,
            turn: call.turn,
            plan: plan.clone(),
            // Only these: the conversation grows while the model writes.
            messages: messages.to_vec(),
            known: call.working_set.clone(),
            target,
        }))
    }
}

/// What is being written down, by agent.
#[derive(Debug, Default)]
pub struct Writing(Mutex<HashMap<Uuid, CancellationToken>>);

impl Writing {
    /// Notes that an agent's model writes; what it wrote of an earlier window ends.
    fn begin(&self, agent: Uuid, stop: &CancellationToken) -> CancellationToken {
        let token = stop.child_token();
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(agent, token.clone());
        before.inspect(CancellationToken::cancel);
        token
    }
}

/// Has the model write down what has left, behind whatever turns it is in; the agent takes it when it is there.
pub fn begin(registry: &Arc<Registry>, leaving: Leaving) {
    let (agent, name) = (leaving.facts.id, leaving.facts.name.clone());
    let stop = registry.writing.begin(agent, registry.summaries.stopping());
    let all = registry.clone();
    registry.spawn(async move {
        let Some(written) = write(&all, leaving, &stop).await else { return };
        if let Err(failure) = all.ask(agent, Verb::Note(Box::new(written))).await {
            tracing::warn!(agent = %name, %failure, "what a model has written down is not kept");
        }
    });
}

/// Returns `None` where the daemon stops, or a later window is written down.
async fn write(registry: &Registry, leaving: Leaving, stop: &CancellationToken) -> Option<WrittenDown> {
    let Leaving { facts, context, turn, plan, messages, known, target } = leaving;
    let tries = AtomicUsize::new(0);
    let ask = |cancel: CancellationToken| {
        let extraction = Extraction {
            registry,
            facts: &facts,
            of: (Some(context), Some(turn)),
            record: &messages,
            leaving: 0..messages.len(),
            known: &known,
            once: true,
        };
        let last = tries.fetch_add(1, Ordering::Relaxed) >= CUT_OFF;
        async move {
            if last {
                return Some(Extracted::InVain("turns went before it, again and again".to_owned()));
            }
            match extraction.run(cancel.clone()).await {
                Extracted::Found(notes) if notes.fallback.is_none() => Some(Extracted::Found(notes)),
                extracted => (!cancel.is_cancelled()).then_some(extracted),
            }
        }
    };
    let provider = registry.models.is_own(&target).then_some(&*target.provider);
    let notes = match registry.summaries.precedence.after_turns(provider, stop, ask).await? {
        Extracted::Found(notes) => Ok(*notes),
        Extracted::InVain(why) => Err(why),
        Extracted::NotAsked => return None,
    };
    Some(WrittenDown { context, plan, notes })
}
