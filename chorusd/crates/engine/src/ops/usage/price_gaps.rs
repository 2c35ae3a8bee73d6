//! Prices that `[prices]` lacks for the usage of a result.

use std::collections::{BTreeMap, BTreeSet};

use chorus_catalog::UsageTotals;
use chorus_llm::{ModelRef, Models};

/// The limit on names in a result.
const MAX_NAMES: usize = 20;

/// Collects the models whose cost is unknown or too high for lack of a price.
#[derive(Debug, Default)]
pub(super) struct PriceGaps {
    /// Calls by the name under which a price can be set.
    unpriced: BTreeMap<String, u64>,
    cached_as_input: BTreeSet<String>,
}

impl PriceGaps {
    /// Adds the usage of our own agents by `model`.
    pub(super) fn add_own(&mut self, models: &Models, model: &str, sums: &UsageTotals) {
        if sums.unpriced > 0 && ModelRef::parse(model).is_some() {
            *self.unpriced.entry(model.to_owned()).or_default() += sums.unpriced;
        }
        self.add_cached(models, model, sums);
    }

    /// Adds the usage of imported conversations by a model that another program names.
    pub(super) fn add_imported(&mut self, models: &Models, model: &str, sums: &UsageTotals) {
        if sums.unpriced > 0 && !model.is_empty() {
            *self.unpriced.entry(Models::settable_price_name(model)).or_default() += sums.unpriced;
        }
        self.add_cached(models, model, sums);
    }

    fn add_cached(&mut self, models: &Models, model: &str, sums: &UsageTotals) {
        if sums.cache_read > 0 {
            self.cached_as_input.extend(models.price_without_cache_read(model));
        }
    }

    /// The names of models without a price, those with the most calls first.
    pub(super) fn unpriced_models(&self) -> Vec<String> {
        let mut models: Vec<_> = self.unpriced.iter().collect();
        // The sort is stable: those with as many calls stay in the order of their names.
        models.sort_by_key(|(_, calls)| std::cmp::Reverse(**calls));
        models.into_iter().map(|(name, _)| name.clone()).take(MAX_NAMES).collect()
    }

    /// The names in `[prices]` by which cached input costs as much as other input.
    pub(super) fn cached_as_input(&self) -> Vec<String> {
        self.cached_as_input.iter().take(MAX_NAMES).cloned().collect()
    }
}
