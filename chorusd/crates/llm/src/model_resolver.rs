//! Resolves names of models: aliases, the model catalog, and suggestions for unknown names.

use std::collections::BTreeMap;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_config::Config;
use chorus_proto::ErrorKind;

use super::model_catalog::{DiscoveryStatus, ModelCatalog, ProviderModels};
use super::model_ref::ModelRef;

/// Limit of names in a hint.
const MAX_HINT_NAMES: usize = 8;

/// The hint if no provider is configured.
pub const SETUP_HINT: &str = "for Anthropic, `export ANTHROPIC_API_KEY=…` and `chorusctl daemon restart`; for a server \
                              of your own, `chorusctl models add local http://localhost:11434/v1`";

/// The names that are known.
pub(crate) struct ModelResolver<'a> {
    pub aliases: &'a BTreeMap<String, String>,
    /// Names of the providers, including local servers that were found.
    pub providers: &'a [String],
    pub available: &'a ModelCatalog,
}

/// Checks that a configuration has the provider of a model, or the alias, as far as that is known without asking any provider.
///
/// # Errors
/// `model_unavailable` with the most similar names.
pub fn check_configured(config: &Config, name: &str) -> Result<()> {
    let providers: Vec<String> = config.providers.keys().cloned().collect();
    let available = ModelCatalog::default();
    ModelResolver { aliases: &config.aliases, providers: &providers, available: &available }.check_assignable(name)
}

impl ModelResolver<'_> {
    /// Returns the model with this name.
    ///
    /// # Errors
    /// `model_unavailable` with the most similar names.
    pub(crate) fn resolve(&self, name: &str) -> Result<ModelRef> {
        let name = name.trim();
        let meant = self.aliases.get(name).map_or(name, String::as_str);
        match ModelRef::parse(meant) {
            Some(target) if self.providers.contains(&target.provider) => self.check_listed(target),
            Some(target) => self.resolve_bare_name(meant).ok_or_else(|| self.unknown_provider(&target)),
            None => self.resolve_bare_name(meant).ok_or_else(|| self.unknown_model(meant)),
        }
    }

    /// Checks that `name` may be stored for later. Refuses a model whose provider was asked and does not list it, and, if
    /// there are providers, one of a provider that is not configured.
    ///
    /// # Errors
    /// `model_unavailable` with the most similar names.
    pub(crate) fn check_assignable(&self, name: &str) -> Result<()> {
        let meant = self.aliases.get(name).map_or(name, String::as_str);
        match ModelRef::parse(meant) {
            Some(target) if self.providers.contains(&target.provider) => self.check_listed(target).map(|_| ()),
            Some(target) if !self.providers.is_empty() => Err(self.unknown_provider(&target)),
            _ => Ok(()),
        }
    }

    /// Resolves a model without its provider, if exactly one provider lists it.
    fn resolve_bare_name(&self, name: &str) -> Option<ModelRef> {
        let mut having = self.listed_providers().filter(|provider| provider.model(name).is_some());
        let found = having.next()?;
        having.next().is_none().then(|| ModelRef::new(&*found.name, name))
    }

    /// Refuses a model that its provider does not list.
    fn check_listed(&self, target: ModelRef) -> Result<ModelRef> {
        let Some(provider) = self.listed_providers().find(|provider| provider.name == target.provider) else {
            return Ok(target);
        };
        if provider.model(&target.model).is_some() {
            return Ok(target);
        }
        let failure =
            Error::new(ErrorKind::ModelUnavailable, format!("{} has no model {:?}", target.provider, target.model));
        let hint = similar_models(&target.model, provider);
        Err(match hint {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None if provider.models.is_empty() => failure.hint("it lists none at all"),
            None => failure.hint(format!("available: {}", summarise_models(provider))),
        })
    }

    fn unknown_provider(&self, target: &ModelRef) -> Error {
        let failure = Error::new(ErrorKind::ModelUnavailable, format!("unknown provider {:?}", target.provider));
        match closest_match(&target.provider, self.providers.iter().map(String::as_str)) {
            Some(meant) => failure.hint(format!("did you mean {meant}/{}?", target.model)),
            None => failure.hint(self.available_hint()),
        }
    }

    fn unknown_model(&self, name: &str) -> Error {
        let failure = Error::new(ErrorKind::ModelUnavailable, format!("unknown model {name:?}"));
        let same: Vec<_> =
            self.listed_providers().filter(|p| p.model(name).is_some()).map(|p| format!("{}/{name}", p.name)).collect();
        if !same.is_empty() {
            return failure.hint(format!("several models match: {}", same.join(", ")));
        }
        let near: Vec<_> = self.listed_providers().filter_map(|provider| similar_models(name, provider)).collect();
        match closest_match(name, self.aliases.keys().map(String::as_str)) {
            Some(alias) => failure.hint(format!("did you mean {alias}?")),
            None if !near.is_empty() => failure.hint(format!("did you mean {}?", near.join(", "))),
            None => failure.hint(self.available_hint()),
        }
    }

    fn available_hint(&self) -> String {
        if self.providers.is_empty() {
            return format!("no model provider configured: {SETUP_HINT}");
        }
        format!("models are named provider/model; providers: {}", self.providers.join(", "))
    }

    /// The providers whose models are known.
    fn listed_providers(&self) -> impl Iterator<Item = &ProviderModels> {
        self.available.providers.iter().filter(|provider| provider.found == DiscoveryStatus::Ok)
    }
}

/// Lists the models of `provider` with names similar to `name`, with the provider's name.
fn similar_models(name: &str, provider: &ProviderModels) -> Option<String> {
    let ids = provider.models.iter().map(|model| &*model.id);
    // People remember a part of the name, such as `sonnet`.
    let mut found: Vec<&str> = ids.clone().filter(|id| id.contains(name)).take(3).collect();
    if found.is_empty() {
        found.extend(closest_match(name, ids));
    }
    let named: Vec<_> = found.into_iter().map(|id| format!("{}/{id}", provider.name)).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

fn summarise_models(provider: &ProviderModels) -> String {
    let shown: Vec<_> = provider.models.iter().take(MAX_HINT_NAMES).map(|model| &*model.id).collect();
    match provider.models.len().checked_sub(MAX_HINT_NAMES).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more (`chorusctl models`)", shown.join(", ")),
        None => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_catalog::ModelInfo;

    fn provider(name: &str, found: DiscoveryStatus, models: &[&str]) -> ProviderModels {
        let models = models.iter().map(|id| ModelInfo { id: (*id).to_owned(), ..Default::default() }).collect();
        ProviderModels {
            name: name.to_owned(),
            kind: "openai".into(),
            base_url: "http://127.0.0.1:1".into(),
            local: false,
            found,
            problem: None,
            hint: None,
            checked_at: None,
            models,
        }
    }

    fn resolve(name: &str) -> Result<String, (String, String)> {
        let available = ModelCatalog {
            providers: vec![
                provider("anthropic", DiscoveryStatus::Ok, &["claude-sonnet-4-5", "claude-haiku-4-5", "both"]),
                provider("router", DiscoveryStatus::Ok, &["meta/llama", "both"]),
                provider("down", DiscoveryStatus::Failed, &["old"]),
            ],
        };
        let aliases = BTreeMap::from([("fast".to_owned(), "anthropic/claude-haiku-4-5".to_owned())]);
        let providers = ["anthropic", "down", "fresh", "router"].map(str::to_owned);
        let known = ModelResolver { aliases: &aliases, providers: &providers, available: &available };
        let found = known.resolve(name).map(|target| target.to_string());
        found.map_err(|failure| {
            assert_eq!(failure.kind, ErrorKind::ModelUnavailable);
            (failure.message, failure.hint.unwrap())
        })
    }

    #[test]
    fn names_and_aliases() {
        for (name, meant) in [
            ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
            (" fast ", "anthropic/claude-haiku-4-5"),
            ("router/meta/llama", "router/meta/llama"),
            ("meta/llama", "router/meta/llama"),
            ("claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
            ("down/anything", "down/anything"),
            ("fresh/anything", "fresh/anything"),
        ] {
            assert_eq!(resolve(name).as_deref(), Ok(meant), "{name}");
        }
    }

    #[test]
    fn near_misses() {
        for (name, message, hint) in [
            ("anthropic/claude-sonet-4-5", "anthropic has no model", "did you mean anthropic/claude-sonnet-4-5?"),
            ("anthropic/haiku", "anthropic has no model", "did you mean anthropic/claude-haiku-4-5?"),
            ("anthropic/gpt", "anthropic has no model", "available: claude-sonnet-4-5, claude-haiku-4-5, both"),
            (
                "antropic/claude-sonnet-4-5",
                "unknown provider \"antropic\"",
                "did you mean anthropic/claude-sonnet-4-5?",
            ),
            ("zzz/x", "unknown provider \"zzz\"", "providers: anthropic, down, fresh, router"),
            ("fsat", "unknown model \"fsat\"", "did you mean fast?"),
            ("both", "unknown model \"both\"", "several models match: anthropic/both, router/both"),
            ("", "unknown model \"\"", ""),
        ] {
            let (said, hinted) = resolve(name).unwrap_err();
            assert!(said.contains(message) && hinted.contains(hint), "{name}: {said}; {hinted}");
        }
    }

    #[test]
    fn without_any_provider_it_is_said_how_to_get_one() {
        let known = ModelResolver { aliases: &BTreeMap::new(), providers: &[], available: &ModelCatalog::default() };
        assert!(known.resolve("x/y").unwrap_err().hint.unwrap().contains("ANTHROPIC_API_KEY"));
    }
}
