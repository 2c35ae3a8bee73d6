//! Providers in the words of the conventions.

use chorus_config::{Provider, ProviderKind};
use url::Url;

/// Hosts of services, or the ends of their names, with the names that the conventions have for them.
const SERVICES: [(&str, &str); 12] = [
    ("api.anthropic.com", "anthropic"),
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure.ai.openai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.groq.com", "groq"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "x_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.moonshot.ai", "moonshot_ai"),
    ("api.cohere.ai", "cohere"),
];

/// A provider as spans name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderNames {
    /// The value of `gen_ai.provider.name`.
    pub(crate) name: String,
    /// Host and port of the server, if known.
    pub(crate) server: Option<(String, u16)>,
}

impl ProviderNames {
    /// Names a provider of the configuration. One that speaks Anthropic's protocol is `anthropic`; among those that speak OpenAI's, the
    /// host decides, and if it is not known the name in the configuration.
    pub(crate) fn of(provider: &Provider) -> Self {
        let url = Url::parse(&provider.base_url).ok();
        let server = url.and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?)));
        let host = server.as_ref().map_or("", |(host, _)| host);
        let service = SERVICES.iter().find(|(end, _)| host == *end || (end.starts_with('.') && host.ends_with(end)));
        let name = match (service, provider.kind) {
            (Some((_, name)), _) => (*name).to_owned(),
            (None, ProviderKind::Anthropic) => "anthropic".to_owned(),
            (None, ProviderKind::Openai) => provider.name.clone(),
        };
        Self { name, server }
    }

    /// Names a provider that is not in the configuration.
    pub(crate) fn unknown(name: &str) -> Self {
        Self { name: name.to_owned(), server: None }
    }
}

#[cfg(test)]
mod tests {
    use chorus_config::{CallLimits, KeySource};

    use super::*;

    #[test]
    fn known_services_have_the_names_of_the_conventions() {
        for (kind, base_url, name, port) in [
            (ProviderKind::Anthropic, "https://api.anthropic.com", "anthropic", 443),
            (ProviderKind::Anthropic, "http://127.0.0.1:4000", "anthropic", 4000),
            (ProviderKind::Openai, "https://api.openai.com/v1", "openai", 443),
            (ProviderKind::Openai, "https://mine.openai.azure.com/openai/v1", "azure.ai.openai", 443),
            (ProviderKind::Openai, "http://127.0.0.1:8080/v1", "local", 8080),
            (ProviderKind::Openai, "https://api.openai.com.example.org/v1", "local", 443),
        ] {
            let provider = Provider {
                name: "local".into(),
                kind,
                base_url: base_url.into(),
                key: KeySource::None,
                limits: CallLimits::default(),
                max_output_tokens: None,
            };
            let names = ProviderNames::of(&provider);
            assert_eq!((&*names.name, names.server.map(|(_, port)| port)), (name, Some(port)), "{base_url}");
        }
    }
}
