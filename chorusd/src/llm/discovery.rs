//! Which models there are: every provider is asked for its list, and the usual ports of this machine too where that is
//! configured. Nothing here is paid for.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::available::{Available, Found, ModelInfo, ProviderModels};
use super::error::{CallError, Class};
use super::models::Models;
use super::providers::{self, To, refused};
use super::transport::{Transport, Watch};
use super::windows;
use crate::config::{Config, Key, Kind, Limits, Provider, Secret};

/// The longest list that is read; that of a large router has less than a megabyte.
const LONGEST_LIST: usize = 16 << 20;
/// Pages of one list.
const PAGES: usize = 50;
/// A list is short work, whatever the limits of calls are.
const PATIENCE: Duration = Duration::from_secs(20);
/// A port of this machine answers at once or not at all.
const LOCAL_PATIENCE: Duration = Duration::from_secs(2);

/// A place where a local server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// The name of the provider that it is then.
    pub name: String,
    pub base_url: String,
}

/// Where Ollama, llama.cpp and LM Studio listen unless they are told otherwise.
#[must_use]
pub fn usual_places() -> Vec<Local> {
    [("ollama", 11434), ("llamacpp", 8080), ("lmstudio", 1234)]
        .map(|(name, port)| Local { name: name.into(), base_url: format!("http://127.0.0.1:{port}/v1") })
        .into()
}

/// A local server as a provider.
pub fn local_provider(name: &str, base_url: &str) -> Provider {
    Provider {
        name: name.to_owned(),
        kind: Kind::Openai,
        base_url: base_url.to_owned(),
        key: Key::None,
        limits: Limits::of(base_url),
        max_output_tokens: None,
    }
}

/// Asks everybody at once. Of `before` stays what a provider that does not answer now had listed.
pub async fn discover(models: &Models, before: &Available) -> Available {
    let configured = join_all(models.configured().map(|provider| ask(models, provider, before)));
    let free = |local: &&Local| {
        let same = |url: &str| url.replace("localhost", "127.0.0.1") == local.base_url;
        !models.configured().any(|provider| provider.name == local.name || same(&provider.base_url))
    };
    let local = join_all(models.local().iter().filter(free).map(|local| probe(models, local)));
    let (mut found, local) = tokio::join!(configured, local);
    found.extend(local.into_iter().flatten());
    Available { providers: found }
}

/// What is known before anybody was asked: as far as an earlier discovery in this home tells.
pub fn known_before(file: &Path, config: &Config) -> Available {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut earlier: Available = serde_json::from_str(&text).unwrap_or_default();
    for provider in &mut earlier.providers {
        provider.found = Found::NotRun;
    }
    let mut providers: Vec<_> = config.providers.values().map(|provider| about(provider, &earlier)).collect();
    let local = earlier.providers.into_iter().filter(|provider| provider.local && config.discovery_local);
    providers.extend(local.filter(|provider| !config.providers.contains_key(&provider.name)));
    Available { providers }
}

/// Writes what was found in place of `file`. Blocks.
pub fn keep(file: &Path, found: &Available) -> std::io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
    serde_json::to_writer_pretty(&mut new, found)?;
    new.write_all(b"\n")?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|e| e.error)?;
    Ok(())
}

/// One provider, not asked yet, with what was known of it while it was the same server.
fn about(provider: &Provider, before: &Available) -> ProviderModels {
    let same = before.provider(&provider.name).filter(|before| before.base_url == provider.base_url);
    ProviderModels {
        name: provider.name.clone(),
        kind: provider.kind.as_str().to_owned(),
        base_url: provider.base_url.clone(),
        local: false,
        found: Found::NotRun,
        problem: None,
        hint: None,
        checked_at: same.and_then(|before| before.checked_at),
        models: same.map(|before| before.models.clone()).unwrap_or_default(),
    }
}

async fn ask(models: &Models, provider: &Provider, before: &Available) -> ProviderModels {
    let about = ProviderModels { checked_at: Some(models.clock().now()), ..about(provider, before) };
    match list(models, provider, PATIENCE).await {
        Ok(models) => ProviderModels { found: Found::Ok, models, ..about },
        Err(error) => ProviderModels {
            found: Found::Failed,
            problem: Some(models.redactor().message(&error.message)),
            hint: error.hint,
            ..about
        },
    }
}

/// A local server, if there is one that speaks as models do.
async fn probe(models: &Models, local: &Local) -> Option<ProviderModels> {
    let mut provider = local_provider(&local.name, &local.base_url);
    provider.limits.connect = LOCAL_PATIENCE;
    let listed = list(models, &provider, LOCAL_PATIENCE).await.ok()?;
    let about = about(&provider, &Available::default());
    Some(ProviderModels {
        local: true,
        found: Found::Ok,
        checked_at: Some(models.clock().now()),
        models: listed,
        ..about
    })
}

async fn list(models: &Models, provider: &Provider, patience: Duration) -> Result<Vec<ModelInfo>, CallError> {
    let (transport, key) = models.reach(provider).await?;
    let limits = Limits { total: patience.min(provider.limits.total), ..provider.limits };
    let listed = pages(&transport, provider, key.as_ref(), limits).await;
    // A server may say the key back, in a refusal or in what should have been a list.
    let mut found = listed.map_err(|error| match &key {
        Some(key) => CallError { message: key.scrub(&error.message), ..error },
        None => error,
    })?;
    // What is of this machine answers at once.
    let limits = Limits { total: LOCAL_PATIENCE.min(limits.total), ..limits };
    windows::look_up(models, provider, &mut found, limits).await;
    Ok(found)
}

async fn pages(
    transport: &Transport,
    provider: &Provider,
    key: Option<&Secret>,
    limits: Limits,
) -> Result<Vec<ModelInfo>, CallError> {
    let translate = providers::of(provider.kind);
    let to = To { provider, key, model: "", images: false };
    let watch = Watch::new(limits, Instant::now() + limits.total);
    let mut found: Vec<ModelInfo> = Vec::new();
    let mut after = None;
    for _ in 0..PAGES {
        let ask = translate.ask_list(&to, after.as_deref())?;
        let mut answer = transport.send(ask, &watch).await?;
        if !(200..300).contains(&answer.status) {
            let (status, headers) = (answer.status, answer.headers.clone());
            let body = answer.error_body(&watch).await;
            return Err(refused(&to, status, &headers, &body));
        }
        let body = answer.body(LONGEST_LIST, &watch).await?;
        let page = translate.listed(&body).map_err(|why| {
            CallError::new(Class::Malformed, format!("the list of {} cannot be read: {why}", provider.name))
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
