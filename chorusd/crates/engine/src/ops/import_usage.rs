//! Collects the usage of an imported session.

use std::collections::HashMap;

use chorus_catalog::{ImportedCallRow, ImportedUsage};
use chorus_session::import::ImportedCall;

/// Maximum plausible tokens of a call. Larger numbers from a file could overflow the sums.
const MAX_TOKENS: u64 = 1 << 40;

/// Maximum plausible number of calls that are recorded together.
const MAX_CALLS: u32 = 1 << 20;

/// Stands for a model that the program does not name.
const UNKNOWN_MODEL: &str = "unknown";

/// Maximum length of a model's name, in characters.
const MAX_MODEL_CHARS: usize = 200;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct UsageBuilder {
    /// The empty name stands for the model of the conversation.
    models: Vec<String>,
    calls: Vec<ImportedCallRow>,
    by_key: HashMap<u64, u32>,
}

impl UsageBuilder {
    /// Adds a call. Of a call that was added before, the larger counts stay.
    pub(super) fn add(&mut self, call: &ImportedCall) {
        let name = call.model.as_deref().unwrap_or_default();
        let model = self.models.iter().rposition(|model| model == name).unwrap_or_else(|| {
            self.models.push(name.to_owned());
            self.models.len() - 1
        });
        let count = |tokens: u64| tokens.min(MAX_TOKENS);
        let calls = u32::try_from(call.calls).unwrap_or(MAX_CALLS).clamp(1, MAX_CALLS);
        let row = ImportedCallRow {
            key: call.key,
            at: call.at,
            model: model as u32,
            calls,
            with_cost: if call.cost_usd.is_some() { calls } else { 0 },
            lower_bound: if call.is_lower_bound { calls } else { 0 },
            input: count(call.input_tokens),
            output: count(call.output_tokens),
            cache_read: count(call.cache_read_tokens),
            cache_write: count(call.cache_write_tokens),
            cost: call.cost_usd.unwrap_or(0.0),
        };
        let Some(known) = self.by_key.get(&call.key).and_then(|at| self.calls.get_mut(*at as usize)) else {
            self.by_key.insert(call.key, self.calls.len() as u32);
            self.calls.push(row);
            return;
        };
        known.calls = known.calls.max(row.calls);
        known.input = known.input.max(row.input);
        known.output = known.output.max(row.output);
        known.cache_read = known.cache_read.max(row.cache_read);
        known.cache_write = known.cache_write.max(row.cache_write);
        known.cost = known.cost.max(row.cost);
        known.with_cost = known.with_cost.max(row.with_cost);
        known.lower_bound = known.lower_bound.min(row.lower_bound);
    }

    /// Returns the usage of a conversation whose model is `model`, as far as its calls do not name one.
    pub(super) fn finish(self, model: Option<&str>) -> ImportedUsage {
        let Self { mut models, calls, .. } = self;
        for name in &mut models {
            if name.is_empty() {
                model.unwrap_or(UNKNOWN_MODEL).clone_into(name);
            }
            if let Some((end, _)) = name.char_indices().nth(MAX_MODEL_CHARS) {
                name.truncate(end);
            }
        }
        ImportedUsage { models, calls }
    }
}
