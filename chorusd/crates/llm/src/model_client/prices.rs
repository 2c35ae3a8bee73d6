//! Prices of models: the configured ones, else those that providers list.

use chorus_config::Price;

use super::Models;
use crate::foreign_price;
use crate::model_ref::ModelRef;

impl Models {
    /// Returns the price of a model: the configured one, else the one that its provider lists.
    #[must_use]
    pub fn price(&self, target: &ModelRef) -> Option<Price> {
        self.settings().prices.get(&target.to_string()).copied().or_else(|| {
            let found = self.catalog.read();
            found.provider(&target.provider)?.model(&target.model)?.price
        })
    }

    /// Returns the price of a model that another program names, if it is clear which one is meant (`foreign_price.rs`).
    #[must_use]
    pub fn price_by_name(&self, name: &str) -> Option<Price> {
        self.named_price(name).map(|(_, price)| price)
    }

    /// Returns the name in `[prices]` whose price counts for a model that another program names, if that has no price for input from
    /// the cache.
    #[must_use]
    pub fn price_without_cache_read(&self, name: &str) -> Option<String> {
        let (found, _) = self.named_price(name)?;
        let configured = self.settings().prices.get(&found).copied()?;
        (configured.input > 0.0 && configured.cache_read.is_none()).then_some(found)
    }

    /// Returns the name by which a price for a model that another program names can be set in `[prices]`.
    #[must_use]
    pub fn settable_price_name(name: &str) -> String {
        foreign_price::settable_name(name)
    }

    /// Returns a price with the name of its model.
    fn named_price(&self, name: &str) -> Option<(String, Price)> {
        if let Some(price) = ModelRef::parse(name).and_then(|target| self.price(&target)) {
            return Some((name.to_owned(), price));
        }
        let (found, settings) = (self.catalog.read(), self.settings());
        let configured = settings.prices.iter().map(|(name, price)| (name.as_str(), *price));
        let listed = found.providers.iter().flat_map(|provider| &provider.models);
        let listed = listed.filter_map(|model| Some((model.id.as_str(), model.price?)));
        let priced = foreign_price::find(name, configured).or_else(|| foreign_price::find(name, listed));
        priced.map(|(name, price)| (name.to_owned(), price))
    }
}
