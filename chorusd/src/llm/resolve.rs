//! From the name of a model to the model: aliases, near misses, and what discovery knows.

use std::collections::BTreeMap;

use chorus_proto::ErrorKind;

use super::available::{Available, Found, ProviderModels};
use super::target::Target;
use crate::config::nearest;
use crate::failure::{Failure, Result};

/// Names that a hint lists at most.
const SHOWN: usize = 8;

/// What is known when a name is looked up.
pub struct Known<'a> {
    pub aliases: &'a BTreeMap<String, String>,
    /// Names of the providers, local ones that were found included.
    pub providers: &'a [String],
    pub available: &'a Available,
}

impl Known<'_> {
    /// The model that `name` means.
    ///
    /// # Errors
    /// `model_unavailable` with the nearest names.
    pub fn resolve(&self, name: &str) -> Result<Target> {
        let name = name.trim();
        let meant = self.aliases.get(name).map_or(name, String::as_str);
        match Target::parse(meant) {
            Some(target) if self.providers.contains(&target.provider) => self.check(target),
            Some(target) => self.bare(meant).ok_or_else(|| self.no_provider(&target)),
            None => self.bare(meant).ok_or_else(|| self.unknown(meant)),
        }
    }

    /// Whether `name` may be noted for later: refused is only what a provider that was asked did not list.
    ///
    /// # Errors
    /// `model_unavailable` with the nearest names.
    pub fn admit(&self, name: &str) -> Result<()> {
        let meant = self.aliases.get(name).map_or(name, String::as_str);
        match Target::parse(meant).filter(|target| self.providers.contains(&target.provider)) {
            Some(target) => self.check(target).map(|_| ()),
            None => Ok(()),
        }
    }

    /// A model without its provider, where only one lists it.
    fn bare(&self, name: &str) -> Option<Target> {
        let mut having = self.listed().filter(|provider| provider.model(name).is_some());
        let found = having.next()?;
        having.next().is_none().then(|| Target::new(&*found.name, name))
    }

    /// Refuses what the provider did not list.
    fn check(&self, target: Target) -> Result<Target> {
        let Some(provider) = self.listed().find(|provider| provider.name == target.provider) else { return Ok(target) };
        if provider.model(&target.model).is_some() {
            return Ok(target);
        }
        let failure =
            Failure::new(ErrorKind::ModelUnavailable, format!("{} has no model {:?}", target.provider, target.model));
        let hint = near(&target.model, provider);
        Err(match hint {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None if provider.models.is_empty() => failure.hint("it lists none at all"),
            None => failure.hint(format!("it has: {}", some_of(provider))),
        })
    }

    fn no_provider(&self, target: &Target) -> Failure {
        let failure = Failure::new(ErrorKind::ModelUnavailable, format!("there is no provider {:?}", target.provider));
        match nearest(&target.provider, self.providers.iter().map(String::as_str)) {
            Some(meant) => failure.hint(format!("did you mean {meant}/{}?", target.model)),
            None => failure.hint(self.what_there_is()),
        }
    }

    fn unknown(&self, name: &str) -> Failure {
        let failure = Failure::new(ErrorKind::ModelUnavailable, format!("there is no model {name:?}"));
        let same: Vec<_> =
            self.listed().filter(|p| p.model(name).is_some()).map(|p| format!("{}/{name}", p.name)).collect();
        if !same.is_empty() {
            return failure.hint(format!("it may be any of: {}", same.join(", ")));
        }
        let near: Vec<_> = self.listed().filter_map(|provider| near(name, provider)).collect();
        match nearest(name, self.aliases.keys().map(String::as_str)) {
            Some(alias) => failure.hint(format!("did you mean {alias}?")),
            None if !near.is_empty() => failure.hint(format!("did you mean {}?", near.join(", "))),
            None => failure.hint(self.what_there_is()),
        }
    }

    fn what_there_is(&self) -> String {
        if self.providers.is_empty() {
            return "no provider is configured: set ANTHROPIC_API_KEY, or add [providers.NAME] to config.toml".into();
        }
        format!("models are named provider/model; providers: {}", self.providers.join(", "))
    }

    /// The providers whose models are known.
    fn listed(&self) -> impl Iterator<Item = &ProviderModels> {
        self.available.providers.iter().filter(|provider| provider.found == Found::Ok)
    }
}

/// The models of `provider` that `name` is close to, with the provider's name.
fn near(name: &str, provider: &ProviderModels) -> Option<String> {
    let ids = provider.models.iter().map(|model| &*model.id);
    // A part of a name is what people remember: `sonnet`.
    let mut found: Vec<&str> = ids.clone().filter(|id| id.contains(name)).take(3).collect();
    if found.is_empty() {
        found.extend(nearest(name, ids));
    }
    let named: Vec<_> = found.into_iter().map(|id| format!("{}/{id}", provider.name)).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

fn some_of(provider: &ProviderModels) -> String {
    let shown: Vec<_> = provider.models.iter().take(SHOWN).map(|model| &*model.id).collect();
    match provider.models.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more (`chorusctl models`)", shown.join(", ")),
        None => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::available::ModelInfo;

    fn provider(name: &str, found: Found, models: &[&str]) -> ProviderModels {
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
        let available = Available {
            providers: vec![
                provider("anthropic", Found::Ok, &["claude-sonnet-4-5", "claude-haiku-4-5", "both"]),
                provider("router", Found::Ok, &["meta/llama", "both"]),
                provider("down", Found::Failed, &["old"]),
            ],
        };
        let aliases = BTreeMap::from([("fast".to_owned(), "anthropic/claude-haiku-4-5".to_owned())]);
        let providers = ["anthropic", "down", "fresh", "router"].map(str::to_owned);
        let known = Known { aliases: &aliases, providers: &providers, available: &available };
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
            ("anthropic/gpt", "anthropic has no model", "it has: claude-sonnet-4-5, claude-haiku-4-5, both"),
            ("antropic/claude-sonnet-4-5", "no provider \"antropic\"", "did you mean anthropic/claude-sonnet-4-5?"),
            ("zzz/x", "no provider \"zzz\"", "providers: anthropic, down, fresh, router"),
            ("fsat", "no model \"fsat\"", "did you mean fast?"),
            ("both", "no model \"both\"", "it may be any of: anthropic/both, router/both"),
            ("", "no model \"\"", ""),
        ] {
            let (said, hinted) = resolve(name).unwrap_err();
            assert!(said.contains(message) && hinted.contains(hint), "{name}: {said}; {hinted}");
        }
    }

    #[test]
    fn without_any_provider_it_is_said_how_to_get_one() {
        let known = Known { aliases: &BTreeMap::new(), providers: &[], available: &Available::default() };
        assert!(known.resolve("x/y").unwrap_err().hint.unwrap().contains("ANTHROPIC_API_KEY"));
    }
}
