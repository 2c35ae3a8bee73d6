//! The context meter: how many tokens the next request of an agent would have, and how many its model accepts.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::Result;
use chorus_llm::Models;
use chorus_proto::Meter;
use chorus_runtime::run_blocking;
use chorus_store::catalog::MemoryTable;
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::agent::prompt::{conversation_budget, max_tool_tokens, to_estimated_tokens};
use crate::agent::registry::Registry;
use crate::agent::{memory_prompt, prompt_size};
use crate::tools;
use crate::usage::UsageTracker;

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
    pub memories: MemoryTable,
    pub models: Arc<Models>,
    pub usage: Arc<UsageTracker>,
}

impl ContextMeter {
    /// Measures the agents that have a live context and a model. It builds no request: a thousand agents cost some
    /// milliseconds.
    pub(super) async fn measure(&self, entries: &[Arc<AgentEntry>]) -> Result<HashMap<Uuid, Meter>> {
        let shown = self.registry.prompt_tokens(entries.iter().map(|entry| (entry.settings.id, entry.settings.window)));
        let live: Vec<_> =
            entries.iter().zip(shown).filter_map(|(entry, shown)| Some((entry.settings.clone(), shown?))).collect();
        if live.is_empty() {
            return Ok(HashMap::new());
        }
        let remembered = memory_prompt::load_memory_blocks(
            &self.memories,
            live.iter().map(|(settings, _)| memory_prompt::memory_scope(settings)).collect(),
        )
        .await?;
        let measured = run_blocking(move || {
            let fixed = |((settings, shown), remembered): ((Arc<AgentSettings>, u64), Option<String>)| {
                (prompt_size::fixed_tokens(&settings, remembered.as_deref()), shown, settings)
            };
            Ok(live.into_iter().zip(remembered).map(fixed).collect::<Vec<_>>())
        });
        let (mut models, mut meters) = (HashMap::new(), HashMap::new());
        for (fixed, shown, settings) in measured.await? {
            let Some(name) = &settings.model else { continue };
            if !models.contains_key(name) {
                models.insert(name.clone(), self.find_model(name).await?);
            }
            let Some(Some(ModelLimits { context_length: window, calibration: ratio })) = models.get(name).copied()
            else {
                continue;
            };
            // The same limits as when the prompt is built for a model with a short context.
            let takes = window.map(|window| to_estimated_tokens(window, ratio));
            let tools = tools::offer_tools(settings.permission_profile(), max_tool_tokens(takes, fixed));
            let shown = shown.min(conversation_budget(&settings, takes, fixed + tools.tokens));
            let due = fixed + tools.tokens + shown;
            // Far below the integers that a float represents exactly.
            let used = (due as f64 * ratio.unwrap_or(1.0)).round() as u64;
            meters.insert(settings.id, Meter { used, window, calibrated: ratio.is_some(), tools: tools.reduced_to });
        }
        Ok(meters)
    }

    /// Returns `None` if no model has this name.
    async fn find_model(&self, name: &str) -> Result<Option<ModelLimits>> {
        let Ok(target) = self.models.resolve(name) else { return Ok(None) };
        let ratio = self.usage.calibration_ratio(&target.to_string()).await?;
        Ok(Some(ModelLimits { context_length: self.models.context_length(&target), calibration: ratio }))
    }
}
