//! The context meter: how many tokens the next request of an agent would have, and how many its model accepts.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use chorus_catalog::MemoryTable;
use chorus_llm::{ModelRef, Models};
use chorus_proto::{Meter, TokenSource};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::agent::prompt::{conversation_budget, max_tool_tokens, to_estimated_tokens};
use crate::agent::prompt_size::{self, ConversationSize};
use crate::agent::registry::Registry;
use crate::agent::request_builder::{BuildOutcome, build_request};
use crate::agent::{command, memory_prompt, model_limits};
use crate::ops::conversations::ConversationTarget;
use crate::tools;
use crate::usage::{PromptCount, UsageTracker};

/// Prompts are built and counted if at most this many agents are asked for.
const MAX_COUNTED_AGENTS: usize = 8;
/// Counts that are kept; they are computed again when they are needed.
const MAX_CACHED_COUNTS: usize = 4096;

/// The limits of a model that the meter needs.
#[derive(Clone, Copy)]
struct ModelLimits {
    /// Its context length in tokens.
    context_length: Option<u64>,
    /// Its calibration: reported tokens per estimated token.
    calibration: Option<f64>,
}

/// Measures what the next request of an agent would be.
#[derive(Debug)]
pub struct ContextMeter {
    pub registry: Arc<Registry>,
    pub memories: Arc<dyn MemoryTable>,
    pub models: Arc<Models>,
    pub usage: Arc<UsageTracker>,
    pub counts: CountCache,
}

/// The last count of each conversation's prompt, with what it depends on.
#[derive(Debug, Default)]
pub struct CountCache(Mutex<HashMap<ConversationKey, (CountKey, PromptCount)>>);

/// What the count of a prompt depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CountKey {
    conversation: ConversationSize,
    /// Estimated tokens of system prompt, docs, memory and tools.
    fixed: u64,
    model: String,
}

impl CountCache {
    fn get(&self, conversation: ConversationKey, key: &CountKey) -> Option<PromptCount> {
        self.0.lock().get(&conversation).filter(|(known, _)| known == key).map(|(_, count)| *count)
    }

    fn insert(&self, conversation: ConversationKey, key: CountKey, count: PromptCount) {
        let mut counts = self.0.lock();
        if counts.len() >= MAX_CACHED_COUNTS {
            counts.clear();
        }
        counts.insert(conversation, (key, count));
    }
}

impl ContextMeter {
    /// Measures the agents that have a live context and a model. For many agents it builds no request: a thousand cost
    /// some milliseconds. If only few are asked for, prompts that can be counted and changed since their last count are
    /// built and counted. Asks no provider.
    pub(super) async fn measure(&self, entries: &[Arc<AgentEntry>]) -> Result<HashMap<Uuid, Meter>> {
        let main = |entry: &Arc<AgentEntry>| (ConversationKey::main(entry.settings.id), entry.settings.clone());
        let meters = self.measure_conversations(entries.iter().map(main).collect()).await?;
        Ok(meters.into_iter().map(|(conversation, meter)| (conversation.agent, meter)).collect())
    }

    /// Measures a conversation of an agent; `None` if it has no live context or the agent no model.
    pub(super) async fn measure_one(&self, target: &ConversationTarget) -> Result<Option<Meter>> {
        let one = vec![(target.key, target.agent.settings.clone())];
        Ok(self.measure_conversations(one).await?.remove(&target.key))
    }

    async fn measure_conversations(
        &self,
        entries: Vec<(ConversationKey, Arc<AgentSettings>)>,
    ) -> Result<HashMap<ConversationKey, Meter>> {
        let shown = self.registry.prompt_tokens(entries.iter().map(|(key, settings)| (*key, settings.window)));
        let is_short_list = entries.len() <= MAX_COUNTED_AGENTS;
        let live: Vec<_> = entries.into_iter().zip(shown).filter_map(|(entry, shown)| Some((entry, shown?))).collect();
        if live.is_empty() {
            return Ok(HashMap::new());
        }
        let remembered = memory_prompt::load_memory_blocks(
            &self.memories,
            live.iter().map(|((_, settings), _)| memory_prompt::memory_scope(settings)).collect(),
        )
        .await?;
        let measured = run_blocking(move || {
            let fixed = |((entry, shown), remembered): (((_, Arc<AgentSettings>), u64), Option<String>)| {
                (prompt_size::fixed_tokens(&entry.1, remembered.as_deref()), shown, entry, remembered)
            };
            Ok(live.into_iter().zip(remembered).map(fixed).collect::<Vec<_>>())
        });
        let (mut models, mut meters) = (HashMap::new(), HashMap::new());
        for (fixed, shown, (conversation, settings), remembered) in measured.await? {
            let Some(name) = &settings.model else { continue };
            if !models.contains_key(name) {
                models.insert(name.clone(), self.find_model(name).await?);
            }
            let Some(Some((target, limits))) = models.get(name) else { continue };
            let ModelLimits { context_length: window, calibration: ratio } = *limits;
            // The same limits as when the prompt is built for a model with a short context.
            let takes = window.map(|window| to_estimated_tokens(window, ratio));
            let servers = self.registry.tools.mcp.tools(&settings.mcp);
            let room = max_tool_tokens(takes, fixed);
            let tools = tools::offer_tools(settings.permission_profile(), &servers, room);
            let shown = shown.min(conversation_budget(&settings, takes, fixed + tools.tokens));
            let due = fixed + tools.tokens + shown;
            // Far below the integers that a float represents exactly.
            let estimate = (due as f64 * ratio.unwrap_or(1.0)).round() as u64;
            let estimate = PromptCount { tokens: estimate, source: TokenSource::Estimated };
            let fixed = fixed + tools.tokens;
            let count = self.count(conversation, (target, ratio), fixed, remembered, is_short_list).await;
            let PromptCount { tokens: used, source } = count.unwrap_or(estimate);
            let tools = tools.reduced_to;
            let meter = Meter { used, window, calibrated: ratio.is_some(), tools, source: Some(source) };
            meters.insert(conversation, meter);
        }
        Ok(meters)
    }

    /// Returns the count of a conversation's next prompt: the last one, if nothing has changed since, else a new one if `build`
    /// says so. `None` if the prompt cannot be counted, or if its window would be compacted first.
    async fn count(
        &self,
        conversation: ConversationKey,
        (target, ratio): (&ModelRef, Option<f64>),
        fixed: u64,
        remembered: Option<String>,
        build: bool,
    ) -> Option<PromptCount> {
        let (agent, counter) = (conversation.agent, self.registry.token_counter.clone());
        let size = self.registry.prompt_size(conversation)?;
        let key = CountKey { conversation: size, fixed, model: target.to_string() };
        if let Some(known) = self.counts.get(conversation, &key) {
            return Some(known);
        }
        // A context that is not in memory is not loaded for this.
        if !build || !counter.may_know(agent, target) || !self.registry.is_loaded(conversation) {
            return None;
        }
        let call = self.registry.ask(conversation, command::window()).await.ok()?;
        let accepts = model_limits::ModelLimits::for_target(&self.models, target, ratio);
        let target = target.clone();
        let servers = self.registry.tools.mcp.tools(&call.settings.mcp);
        let count = run_blocking(move || {
            let built = build_request(&call, remembered, &servers, accepts);
            let BuildOutcome::Prompt(prompt) = built else { return Ok(None) };
            let print = counter.fingerprint(&target, &prompt.request);
            Ok(Some(counter.count(agent, &target, (&prompt.request, &print), ratio, true)))
        });
        let count = count.await.ok()?.filter(|count| count.source != TokenSource::Estimated)?;
        self.counts.insert(conversation, key, count);
        Some(count)
    }

    /// Returns `None` if no model has this name.
    async fn find_model(&self, name: &str) -> Result<Option<(ModelRef, ModelLimits)>> {
        let Ok(target) = self.models.resolve(name) else { return Ok(None) };
        let calibration = self.usage.calibration_ratio(&target.to_string()).await?;
        let context_length = self.models.context_length(&target);
        Ok(Some((target, ModelLimits { context_length, calibration })))
    }
}
