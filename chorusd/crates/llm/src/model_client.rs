//! The public interface of the part: lists models and calls them.

mod prices;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Secret;
use chorus_base::error::{Error, Result};
use chorus_base::sync::{Mutex, RwLock};
use chorus_clock::Clock;
use chorus_config::{Config, Provider, ProviderKind};
use chorus_proto::Attachment;
use chorus_redact::Redactor;
use futures_util::future::BoxFuture;
use reqwest::Client;
use tokio_util::sync::CancellationToken;

use super::api_key::{self, KeyStatus};
use super::call_runner::ModelCall;
use super::error::{CallError, ErrorClass};
use super::learned_limits::{AmendedRequest, LearnedLimits};
use super::model_catalog::{DiscoveryStatus, ModelCatalog};
use super::model_discovery::{self, LocalServer};
use super::model_ref::ModelRef;
use super::model_resolver::ModelResolver;
use super::model_settings::ModelSettings;
use super::providers;
use super::reply::Reply;
use super::request::ModelRequest;
use super::retry::RetryPolicy;
use super::stream_event::{StreamEvent, StreamListener};
use super::transport::{self, ClientKind, Transport};

/// File in the home with the result of the last discovery.
pub const MODEL_CATALOG_FILE: &str = "available_models.json";

/// Returns a random number from 0 up to 1.
pub type RandomFraction = Arc<dyn Fn() -> f64 + Send + Sync>;

/// Context length that every model of Anthropic has at least, in tokens.
const CLAUDE_CONTEXT_LENGTH: u64 = 200_000;

/// Default limit of a reply in tokens.
const DEFAULT_REPLY_TOKENS: u64 = 8192;

/// All models that this daemon can call.
pub struct Models {
    settings: RwLock<Arc<ModelSettings>>,
    local: Vec<LocalServer>,
    policy: RetryPolicy,
    chance: RandomFraction,
    file: PathBuf,
    /// Result of the last discovery.
    catalog: RwLock<ModelCatalog>,
    learned: LearnedLimits,
    clients: Mutex<HashMap<ClientKind, Client>>,
    clock: Clock,
    redactor: Arc<Redactor>,
    /// Held during a discovery, so that only one runs at a time.
    discovering: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models").field("providers", &self.provider_names()).finish_non_exhaustive()
    }
}

impl Models {
    /// Creates the registry of the models of `config`, with the result of an earlier discovery in `home`. Dates come
    /// from `clock`; limits and waits use the machine's clock. `redactor` learns every key as it is read, those that
    /// are readable now at once. Reads files: blocks. Sends no requests.
    #[must_use]
    pub fn new(config: &Config, home: &Path, clock: Clock, redactor: Arc<Redactor>) -> Self {
        let settings = ModelSettings::read(config, &redactor);
        let file = home.join(MODEL_CATALOG_FILE);
        let local = if config.discovery_local { model_discovery::default_local_servers() } else { Vec::new() };
        let found = model_discovery::load_catalog(&file, config);
        Self {
            settings: RwLock::new(Arc::new(settings)),
            local,
            policy: RetryPolicy::default(),
            chance: Arc::new(fastrand::f64),
            file,
            catalog: RwLock::new(found),
            learned: LearnedLimits::default(),
            clients: Mutex::default(),
            clock,
            redactor,
            discovering: tokio::sync::Mutex::default(),
        }
    }

    /// Takes providers, aliases and prices from a changed configuration. Returns true if the providers are others; then their
    /// models are known after the next [`Models::discover`]. Reads files: blocks.
    pub fn reconfigure(&self, config: &Config) -> bool {
        let new = Arc::new(ModelSettings::read(config, &self.redactor));
        let old = std::mem::replace(&mut *self.settings.write(), new.clone());
        self.catalog.write().providers.retain(|found| found.local || new.providers.contains_key(&found.name));
        old.providers != new.providers
    }

    fn settings(&self) -> Arc<ModelSettings> {
        self.settings.read().clone()
    }

    /// Replaces the local servers, the retry policy and the random numbers, for tests.
    #[must_use]
    pub fn for_tests(self, local: Vec<LocalServer>, policy: RetryPolicy, chance: RandomFraction) -> Self {
        Self { local, policy, chance, ..self }
    }

    /// The redactor, which knows every key that was read.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Resolves the name of a model: an alias, `provider/model`, or a model that only one provider lists.
    ///
    /// # Errors
    /// `model_unavailable` with the most similar names. A model is refused only if its provider was asked and does not
    /// list it.
    pub fn resolve(&self, name: &str) -> Result<ModelRef> {
        self.with_resolver(|known| known.resolve(name))
    }

    /// Checks that an agent may be assigned the model `name`. Refuses a model whose provider was asked and does
    /// not list it, and one of a provider that is not configured.
    ///
    /// # Errors
    /// `model_unavailable` with the most similar names.
    pub fn check_assignable(&self, name: &str) -> Result<()> {
        self.with_resolver(|known| known.check_assignable(name))
    }

    fn with_resolver<T>(&self, ask: impl FnOnce(&ModelResolver<'_>) -> T) -> T {
        let (providers, settings) = (self.provider_names(), self.settings());
        let available = self.catalog.read();
        ask(&ModelResolver { aliases: &settings.aliases, providers: &providers, available: &available })
    }

    /// True if any provider is configured or was found on this machine.
    #[must_use]
    pub fn has_providers(&self) -> bool {
        !self.provider_names().is_empty()
    }

    /// The only model of the only provider; `None` if there are several or none.
    #[must_use]
    pub fn only_model(&self) -> Option<ModelRef> {
        let catalog = self.catalog.read();
        match (&*self.provider_names(), &*catalog.providers) {
            ([_], [provider]) if provider.models.len() == 1 => {
                Some(ModelRef::new(&*provider.name, &*provider.models[0].id))
            }
            _ => None,
        }
    }

    /// Short names, each with its `provider/model`.
    #[must_use]
    pub fn aliases(&self) -> BTreeMap<String, String> {
        self.settings().aliases.clone()
    }

    /// Calls a model. Passes stream events to `listener` as they arrive, and returns the whole reply. Retries transient
    /// failures as long as no event was passed on. If the model refuses the request because of images or of the length
    /// of the reply, amends the request and repeats it. Dropping or cancelling the call closes the connection.
    ///
    /// # Errors
    /// The reason why there is no complete reply, with the part that had arrived.
    pub async fn call(
        &self,
        target: &ModelRef,
        request: &ModelRequest,
        listener: StreamListener<'_>,
        cancel: CancellationToken,
    ) -> Result<Reply, CallError> {
        let mut request = Cow::Borrowed(request);
        loop {
            let called = self
                .call_with_policy(
                    self.policy,
                    target,
                    &self.learned.apply_limits(target, &request),
                    listener,
                    cancel.clone(),
                )
                .await;
            let Err(error) = called else { return called };
            match self.learned.learn(target, &request, &error) {
                Some(AmendedRequest { request: amended, note }) => {
                    tracing::info!(model = %target, %error, "the request is amended");
                    note.into_iter().for_each(|note| listener(StreamEvent::Note(note)));
                    request = Cow::Owned(amended);
                }
                // If the prompt leaves no room even for the shortest reply, the prompt is what is too long.
                None if error.class == ErrorClass::AnswerTooLong => {
                    return Err(CallError { class: ErrorClass::ContextTooLong, ..error });
                }
                None => return Err(error),
            }
        }
    }

    /// As [`Models::call`], for a short reply without a listener, and with a single attempt: the caller decides on
    /// another one, with [`Models::retry_delay`].
    pub async fn call_once(
        &self,
        target: &ModelRef,
        request: &ModelRequest,
        cancel: CancellationToken,
    ) -> Result<Reply, CallError> {
        self.call_with_policy(RetryPolicy { max_attempts: 1, ..self.policy }, target, request, &|_| (), cancel).await
    }

    /// As [`Models::call_once`], for a reply with an output format. If the server does not support that, repeats the
    /// call without it, since the prompt also describes the format.
    pub async fn call_structured(
        &self,
        target: &ModelRef,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> Result<Reply, CallError> {
        match self.call_once(target, &request, cancel.clone()).await {
            Err(error) if providers::refuses_structured_output(&error) => {
                tracing::info!(model = %target, %error, "retrying without structured output");
                self.call_once(target, &ModelRequest { output_format: None, ..request }, cancel).await
            }
            called => called,
        }
    }

    /// Returns the wait before another attempt after `error`; `None` if another attempt is useless.
    #[must_use]
    pub fn retry_delay(&self, error: &CallError) -> Option<Duration> {
        self.policy.retry_delay(error, 1, (self.chance)())
    }

    fn call_with_policy<'a>(
        &'a self,
        policy: RetryPolicy,
        target: &'a ModelRef,
        request: &'a ModelRequest,
        listener: StreamListener<'a>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let provider = self.provider(&target.provider).ok_or_else(|| {
                CallError::new(ErrorClass::NotFound, format!("unknown provider {:?}", target.provider))
                    .hint("list models: chorusctl models")
            })?;
            let (transport, key) = self.connect(&provider).await?;
            let request = &*cap_max_tokens(request, provider.max_output_tokens);
            let call = ModelCall {
                transport,
                provider: &provider,
                key,
                model: &target.model,
                request,
                listener,
                policy,
                chance: &self.chance,
                clock: &self.clock,
                redactor: &self.redactor,
            };
            let mut reply = match call.run(providers::protocol(provider.kind), &cancel).await {
                Ok(reply) => reply,
                Err(mut error) => {
                    if let (Some(usage), Some(price)) = (&mut error.usage, self.price(target)) {
                        usage.cost_usd =
                            usage.cost_usd.or_else(|| Some(super::reply::calculate_cost(&price, usage, None)));
                    }
                    return Err(error);
                }
            };
            // The cost that a provider reports for this call is better than its price list, but a configured price has
            // precedence.
            let told = reply.usage.cost_usd.is_some() && !self.settings().prices.contains_key(&target.to_string());
            // Without token counts the cost is unknown here; the usage accounting estimates it.
            let counted = reply.usage.input_tokens.is_some() || reply.usage.output_tokens.is_some();
            if let Some(price) = self.price(target).filter(|_| !told && counted) {
                reply.usage.cost_usd =
                    Some(super::reply::calculate_cost(&price, &reply.usage, reply.cache_write_tokens));
            }
            Ok(reply)
        })
    }

    /// Returns the context length of a model, in tokens of prompt and reply together, if it is known.
    #[must_use]
    pub fn context_length(&self, target: &ModelRef) -> Option<u64> {
        let found = self.catalog.read();
        let model = found.provider(&target.provider).and_then(|provider| provider.model(&target.model));
        model.and_then(|model| model.context_length).or_else(|| {
            let kind = self.settings().providers.get(&target.provider).map(|provider| provider.kind);
            (kind == Some(ProviderKind::Anthropic) && target.model.starts_with("claude-"))
                .then_some(CLAUDE_CONTEXT_LENGTH)
        })
    }

    /// Returns false if a model is known to accept no images: its server lists that, or has refused an image.
    #[must_use]
    pub fn accepts_images(&self, target: &ModelRef) -> bool {
        if self.learned.refuses_images(target) {
            return false;
        }
        let found = self.catalog.read();
        let model = found.provider(&target.provider).and_then(|provider| provider.model(&target.model));
        model.and_then(|model| model.images) != Some(false)
    }

    /// Returns the limit of a reply in a turn, in tokens, before the context length limits it further.
    ///
    /// If the context length is unknown, it is taken to be `shown`, the limit of tokens in the window: a self-hosted
    /// server may be slow, and a reply that nothing ends would take minutes. Services on the Internet limit replies
    /// themselves.
    #[must_use]
    pub fn max_reply_tokens(&self, target: &ModelRef, shown: u64) -> u64 {
        let configured = self.provider(&target.provider).and_then(|provider| provider.max_output_tokens);
        if let Some(configured) = configured {
            return configured;
        }
        if self.is_self_hosted(target) && self.context_length(target).is_none() {
            DEFAULT_REPLY_TOKENS.min(shown / 5).max(1)
        } else {
            DEFAULT_REPLY_TOKENS
        }
    }

    /// Returns whether the server is self-hosted, and so may be slow and process one request at a time. Servers without
    /// TLS are taken for self-hosted.
    #[must_use]
    pub fn is_self_hosted(&self, target: &ModelRef) -> bool {
        self.provider(&target.provider).is_some_and(|provider| provider.base_url.starts_with("http://"))
    }

    /// Checks that the provider of `target` accepts the attachments.
    ///
    /// # Errors
    /// `invalid_params` with the first image for which it would refuse the conversation.
    pub fn check_attachments(&self, target: &ModelRef, attachments: &[Attachment]) -> Result<()> {
        let refused = attachments.iter().find_map(|file| Some((file, self.attachment_problem(target, file)?)));
        match refused {
            None => Ok(()),
            Some((file, why)) => {
                let hint = if self.accepts_images(target) {
                    "attach a smaller PNG or JPEG image, or choose a model that accepts images"
                } else {
                    "choose a model that accepts images: chorusctl agent config NAME model PROVIDER/MODEL"
                };
                Err(Error::invalid(format!("cannot send {} to {target}: {why}", file.name)).hint(hint))
            }
        }
    }

    /// Returns the reason why `target` would not accept an image; `None` if the attachment is no image or, as far as is
    /// known, acceptable.
    #[must_use]
    pub fn attachment_problem(&self, target: &ModelRef, attachment: &Attachment) -> Option<String> {
        if providers::images::has_bytes(attachment) && !self.accepts_images(target) {
            return Some("the model does not accept images".into());
        }
        let Provider { kind, .. } = self.provider(&target.provider)?;
        providers::images::image_problem(attachment, kind)
    }

    /// The result of the last discovery.
    #[must_use]
    pub fn available(&self) -> ModelCatalog {
        self.catalog.read().clone()
    }

    /// Number of models that the last discovery found.
    #[must_use]
    pub fn model_count(&self) -> u64 {
        self.catalog.read().count()
    }

    /// Checks the key of each configured provider. Reads files: blocks.
    #[must_use]
    pub fn check_keys(&self) -> Vec<KeyStatus> {
        self.settings().providers.values().map(api_key::check_key).collect()
    }

    /// Describes the source of the key that is sent to a provider; `None` if it is sent none.
    #[must_use]
    pub fn describe_key_source(&self, provider: &str) -> Option<String> {
        self.settings().providers.get(provider).and_then(api_key::describe_source)
    }

    /// Asks every provider for its list of models, and probes local servers if that is configured; makes no paid calls.
    /// Saves the result in the home.
    pub async fn discover(&self) -> ModelCatalog {
        if self.settings().providers.is_empty() && self.local.is_empty() {
            return self.available();
        }
        let _alone = self.discovering.lock().await;
        let before = self.available();
        let found = model_discovery::discover_all(self, &before).await;
        self.catalog.write().clone_from(&found);
        self.learned.clear();
        let (file, kept) = (self.file.clone(), found.clone());
        let written = chorus_runtime::spawn_blocking(move || model_discovery::save_catalog(&file, &kept)).await;
        if let Ok(Err(e)) = written {
            tracing::warn!("cannot write {MODEL_CATALOG_FILE}: {e}");
        }
        for provider in found.providers.iter().filter(|provider| provider.found == DiscoveryStatus::Failed) {
            let problem = provider.problem.as_deref().unwrap_or_default();
            tracing::warn!(provider = %provider.name, problem, "cannot list its models");
        }
        found
    }

    pub(super) fn configured(&self) -> Vec<Provider> {
        self.settings().providers.values().cloned().collect()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn local_servers(&self) -> &[LocalServer] {
        &self.local
    }

    /// Names of all providers, including local servers that were found.
    fn provider_names(&self) -> Vec<String> {
        let found = self.catalog.read();
        let local = found.providers.iter().filter(|provider| provider.local).map(|provider| &provider.name);
        self.settings().providers.keys().chain(local).cloned().collect()
    }

    pub(super) fn provider(&self, name: &str) -> Option<Provider> {
        self.settings().providers.get(name).cloned().or_else(|| {
            let found = self.catalog.read();
            let local = found.provider(name).filter(|provider| provider.local)?;
            Some(model_discovery::local_provider(&local.name, &local.base_url))
        })
    }

    /// Returns the transport and the key for a provider.
    pub(super) async fn connect(&self, provider: &Provider) -> Result<(Transport, Option<Secret>), CallError> {
        let kind = transport::client_kind(provider);
        let known = self.clients.lock().get(&kind).cloned();
        let at = provider.clone();
        // Run on the blocking pool: the key may be in a file, and building a client reads the system's certificates.
        let made = chorus_runtime::spawn_blocking(move || {
            let key = api_key::read_key(&at)?;
            let client = known.map_or_else(|| transport::build_client(kind), Ok)?;
            Ok((client, key))
        });
        let (client, key) = made.await.map_err(|e| CallError::new(ErrorClass::Network, e.to_string()))??;
        if let Some(key) = &key {
            self.redactor.add_own_key(key);
        }
        self.clients.lock().entry(kind).or_insert_with(|| client.clone());
        Ok((Transport::new(client, provider), key))
    }
}

/// Limits the reply of the request to `most` tokens.
fn cap_max_tokens(request: &ModelRequest, most: Option<u64>) -> Cow<'_, ModelRequest> {
    let most = most.map_or(u32::MAX, |most| u32::try_from(most).unwrap_or(u32::MAX));
    if request.max_tokens <= most {
        return Cow::Borrowed(request);
    }
    Cow::Owned(ModelRequest { max_tokens: most, ..request.clone() })
}
