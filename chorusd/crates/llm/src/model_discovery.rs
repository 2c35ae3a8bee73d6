//! Discovery of models: asks every provider for its list, and probes the default ports on this machine if that is
//! configured. Makes no paid calls.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use chorus_base::Secret;
use chorus_config::{CallLimits, Config, KeySource, Provider, ProviderKind};
use futures_util::future::BoxFuture;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::error::{CallError, ErrorClass};
use super::local_context_length;
use super::model_catalog::{DiscoveryStatus, ModelCatalog, ModelInfo, ProviderModels};
use super::model_client::Models;
use super::providers::{self, RequestTarget, refusal_error};
use super::transport::{AttemptDeadline, Transport};

/// Limit of a list in bytes; that of a large router has less than a megabyte.
const MAX_LIST_BYTES: usize = 16 << 20;
/// Limit of pages of one list.
const MAX_PAGES: usize = 50;
/// Time limit of a list; listing is short work, whatever the limits of calls are.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit of a port on this machine, which answers immediately or not at all.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(2);

/// A place where a local server may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Name of the provider for this server.
    pub name: String,
    pub base_url: String,
}

/// Default addresses of Ollama, llama.cpp and LM Studio.
#[must_use]
pub(crate) fn default_local_servers() -> Vec<LocalServer> {
    [("ollama", 11434), ("llamacpp", 8080), ("lmstudio", 1234)]
        .map(|(name, port)| LocalServer { name: name.into(), base_url: format!("http://127.0.0.1:{port}/v1") })
        .into()
}

/// The provider for a local server.
pub(crate) fn local_provider(name: &str, base_url: &str) -> Provider {
    Provider {
        name: name.to_owned(),
        kind: ProviderKind::Openai,
        base_url: base_url.to_owned(),
        key: KeySource::None,
        limits: CallLimits::for_url(base_url),
        max_output_tokens: None,
    }
}

/// Asks all providers concurrently. A provider that does not answer keeps its models from `before`.
pub(crate) async fn discover_all(models: &Models, before: &ModelCatalog) -> ModelCatalog {
    let providers = models.configured();
    let configured = join_all(providers.iter().map(|provider| query_provider(models, provider, before)));
    let free = |local: &&LocalServer| {
        let same = |url: &str| url.replace("localhost", "127.0.0.1") == local.base_url;
        !providers.iter().any(|provider| provider.name == local.name || same(&provider.base_url))
    };
    let local = join_all(models.local_servers().iter().filter(free).map(|local| probe_local(models, local)));
    let (mut found, local) = tokio::join!(configured, local);
    found.extend(local.into_iter().flatten());
    ModelCatalog { providers: found }
}

/// Loads the result of an earlier discovery in this home, which is valid until providers are asked.
pub(crate) fn load_catalog(file: &Path, config: &Config) -> ModelCatalog {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut earlier: ModelCatalog = serde_json::from_str(&text).unwrap_or_default();
    for provider in &mut earlier.providers {
        provider.found = DiscoveryStatus::NotRun;
    }
    let mut providers: Vec<_> = config.providers.values().map(|provider| unqueried(provider, &earlier)).collect();
    let local = earlier.providers.into_iter().filter(|provider| provider.local && config.discovery_local);
    providers.extend(local.filter(|provider| !config.providers.contains_key(&provider.name)));
    ModelCatalog { providers }
}

/// Saves the catalog in place of `file`. Blocks.
pub(crate) fn save_catalog(file: &Path, found: &ModelCatalog) -> std::io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
    serde_json::to_writer_pretty(&mut new, found)?;
    new.write_all(b"\n")?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|e| e.error)?;
    Ok(())
}

/// The entry of a provider that was not asked yet, with its models from `before` if the server is the same.
fn unqueried(provider: &Provider, before: &ModelCatalog) -> ProviderModels {
    let same = before.provider(&provider.name).filter(|before| before.base_url == provider.base_url);
    ProviderModels {
        name: provider.name.clone(),
        kind: provider.kind.as_str().to_owned(),
        base_url: provider.base_url.clone(),
        local: false,
        found: DiscoveryStatus::NotRun,
        problem: None,
        hint: None,
        checked_at: same.and_then(|before| before.checked_at),
        models: same.map(|before| before.models.clone()).unwrap_or_default(),
    }
}

async fn query_provider(models: &Models, provider: &Provider, before: &ModelCatalog) -> ProviderModels {
    let about = ProviderModels { checked_at: Some(models.clock().now()), ..unqueried(provider, before) };
    match list_models(models, provider, LIST_TIMEOUT).await {
        Ok(models) => ProviderModels { found: DiscoveryStatus::Ok, models, ..about },
        Err(error) => ProviderModels {
            found: DiscoveryStatus::Failed,
            problem: Some(models.redactor().redact_message(&error.message)),
            hint: error.hint,
            ..about
        },
    }
}

/// Probes a local server; `None` if no model server answers.
async fn probe_local(models: &Models, local: &LocalServer) -> Option<ProviderModels> {
    let mut provider = local_provider(&local.name, &local.base_url);
    provider.limits.connect = LOCAL_TIMEOUT;
    let listed = list_models(models, &provider, LOCAL_TIMEOUT).await.ok()?;
    let about = unqueried(&provider, &ModelCatalog::default());
    Some(ProviderModels {
        local: true,
        found: DiscoveryStatus::Ok,
        checked_at: Some(models.clock().now()),
        models: listed,
        ..about
    })
}

fn list_models<'a>(
    models: &'a Models,
    provider: &'a Provider,
    patience: Duration,
) -> BoxFuture<'a, Result<Vec<ModelInfo>, CallError>> {
    Box::pin(async move {
        let (transport, key) = models.connect(provider).await?;
        let limits = CallLimits { total: patience.min(provider.limits.total), ..provider.limits };
        let listed = fetch_pages(&transport, provider, key.as_ref(), limits).await;
        // A server may echo the key, in an error or in the list.
        let mut found = listed.map_err(|error| match &key {
            Some(key) => CallError { message: key.scrub(&error.message), ..error },
            None => error,
        })?;
        // Servers on this machine answer immediately.
        let limits = CallLimits { total: LOCAL_TIMEOUT.min(limits.total), ..limits };
        local_context_length::fill_context_lengths(models, provider, &mut found, limits).await;
        Ok(found)
    })
}

async fn fetch_pages(
    transport: &Transport,
    provider: &Provider,
    key: Option<&Secret>,
    limits: CallLimits,
) -> Result<Vec<ModelInfo>, CallError> {
    let translate = providers::protocol(provider.kind);
    let to = RequestTarget { provider, key, model: "", images: false };
    let watch = AttemptDeadline::new(limits, Instant::now() + limits.total);
    let mut found: Vec<ModelInfo> = Vec::new();
    let mut after = None;
    for _ in 0..MAX_PAGES {
        let ask = translate.build_list_request(&to, after.as_deref())?;
        let mut answer = transport.send(ask, &watch).await?;
        if !(200..300).contains(&answer.status) {
            let (status, headers) = (answer.status, answer.headers.clone());
            let body = answer.error_body(&watch).await;
            return Err(refusal_error(&to, status, &headers, &body));
        }
        let body = answer.body(MAX_LIST_BYTES, &watch).await?;
        let page = translate.parse_list(&body).map_err(|why| {
            CallError::new(ErrorClass::Malformed, format!("cannot read the model list of {}: {why}", provider.name))
                .hint("check `kind` and `base_url` in config.toml")
        })?;
        found.extend(page.models);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort_by(|one, two| one.id.cmp(&two.id));
    found.dedup_by(|one, two| one.id == two.id);
    Ok(found)
}
