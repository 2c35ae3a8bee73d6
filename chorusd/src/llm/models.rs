//! The face of the part: which models there are, and calling them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use chorus_proto::Attachment;
use reqwest::Client;
use tokio_util::sync::CancellationToken;

use super::available::{Available, Found};
use super::call::Call;
use super::discovery::{self, Local};
use super::error::{CallError, Class};
use super::key::{self, KeyFound};
use super::learned::{Amended, Learned};
use super::output::{Hear, Output};
use super::providers;
use super::reply::Reply;
use super::request::Request;
use super::resolve::Known;
use super::retry::Policy;
use super::target::Target;
use super::transport::{self, ClientKind, Transport};
use crate::clock::Clock;
use crate::config::{Config, Kind, Price, Provider, Secret};
use crate::failure::{Failure, Result};
use crate::redact::{FingerprintKey, Redactor};

/// The file in the home that keeps what discovery found.
pub const FILE: &str = "available_models.json";

/// A number from 0 up to 1.
pub type Chance = Arc<dyn Fn() -> f64 + Send + Sync>;

/// What every model of Anthropic takes at least.
const CLAUDE_WINDOW: u64 = 200_000;

/// The longest answer of a turn, in tokens, where nobody has configured another.
const USUAL_ANSWER: u64 = 8192;

/// All models that this daemon can call.
pub struct Models {
    configured: BTreeMap<String, Provider>,
    aliases: BTreeMap<String, String>,
    prices: BTreeMap<String, Price>,
    local: Vec<Local>,
    policy: Policy,
    chance: Chance,
    file: PathBuf,
    /// What the last discovery found.
    found: RwLock<Available>,
    learned: Learned,
    clients: Mutex<HashMap<ClientKind, Client>>,
    clock: Clock,
    redactor: Arc<Redactor>,
    /// One discovery at a time.
    discovering: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models").field("providers", &self.names()).finish_non_exhaustive()
    }
}

impl Models {
    /// The models of `config`; what an earlier discovery found is read from `home`. Dates are those
    /// of `clock`; limits and waits are of the machine's. Asks nobody.
    #[must_use]
    pub fn new(config: &Config, home: &Path, clock: Clock) -> Self {
        let file = home.join(FILE);
        let local = if config.discovery_local { discovery::usual_places() } else { Vec::new() };
        let found = discovery::known_before(&file, config);
        Self {
            configured: config.providers.clone(),
            aliases: config.aliases.clone(),
            prices: config.prices.clone(),
            local,
            policy: Policy::default(),
            chance: Arc::new(chance),
            file,
            found: RwLock::new(found),
            learned: Learned::default(),
            clients: Mutex::default(),
            clock,
            redactor: Arc::new(Redactor::new(FingerprintKey::default)),
            discovering: tokio::sync::Mutex::default(),
        }
    }

    /// The same with other places to look for local servers, another policy and other chances: for tests.
    #[must_use]
    pub fn bent(self, local: Vec<Local>, policy: Policy, chance: Chance) -> Self {
        Self { local, policy, chance, ..self }
    }

    /// The same with what takes secrets out. It learns the keys that can be read now. Reads files: blocks.
    #[must_use]
    pub fn redacting(self, redactor: Arc<Redactor>) -> Self {
        for provider in self.configured.values() {
            if let Ok(Some(key)) = key::read(provider) {
                redactor.learn(&key);
            }
        }
        Self { redactor, ..self }
    }

    /// What takes secrets out: it knows every key that was read.
    #[must_use]
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// The model that a name means: an alias, `provider/model`, or a model that one provider alone has.
    ///
    /// # Errors
    /// `model_unavailable` with the nearest names. What the provider did not list is refused where it was asked.
    pub fn resolve(&self, name: &str) -> Result<Target> {
        self.known(|known| known.resolve(name))
    }

    /// Whether an agent may be given the model `name`: refused is only what its provider was asked for and does not have.
    ///
    /// # Errors
    /// `model_unavailable` with the nearest names.
    pub fn admit(&self, name: &str) -> Result<()> {
        self.known(|known| known.admit(name))
    }

    fn known<T>(&self, ask: impl FnOnce(&Known<'_>) -> T) -> T {
        let providers = self.names();
        let available = self.found.read().unwrap_or_else(PoisonError::into_inner);
        ask(&Known { aliases: &self.aliases, providers: &providers, available: &available })
    }

    /// Short names, each with its `provider/model`.
    #[must_use]
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.aliases
    }

    /// Calls a model. What comes is heard by `hear` at once, and the whole is returned; failures that pass by themselves
    /// are tried again as long as nothing was handed out. A request that the model turns out not to take as it is, because of images
    /// or of the length of the answer, is amended. Dropping the call, or cancelling it, closes the connection.
    ///
    /// # Errors
    /// Why there is no whole answer, with the part that there was.
    pub async fn call(
        &self,
        target: &Target,
        request: &Request,
        hear: Hear<'_>,
        cancel: CancellationToken,
    ) -> Result<Reply, CallError> {
        let mut request = Cow::Borrowed(request);
        loop {
            let called =
                self.call_by(self.policy, target, &self.learned.fitted(target, &request), hear, cancel.clone()).await;
            let Err(error) = called else { return called };
            match self.learned.learn(target, &request, &error) {
                Some(Amended { request: amended, note }) => {
                    tracing::info!(model = %target, %error, "the request is amended");
                    note.into_iter().for_each(|note| hear(Output::Note(note)));
                    request = Cow::Owned(amended);
                }
                // A prompt that leaves no room even for the shortest answer is what is too long.
                None if error.class == Class::AnswerTooLong => {
                    return Err(CallError { class: Class::ContextTooLong, ..error });
                }
                None => return Err(error),
            }
        }
    }

    /// As [`Models::call`], for a short answer that nobody watches, and with one try: whether there is another is up to the
    /// caller, who asks [`Models::patience`].
    ///
    /// # Errors
    /// As [`Models::call`].
    pub async fn call_once(
        &self,
        target: &Target,
        request: &Request,
        cancel: CancellationToken,
    ) -> Result<Reply, CallError> {
        self.call_by(Policy { tries: 1, ..self.policy }, target, request, &|_| (), cancel).await
    }

    /// As [`Models::call_once`], for an answer that is to have a form; a server that cannot hold the model to it is asked again
    /// without, as the request itself says what is wanted.
    ///
    /// # Errors
    /// As [`Models::call`].
    pub async fn call_shaped(
        &self,
        target: &Target,
        request: Request,
        cancel: CancellationToken,
    ) -> Result<Reply, CallError> {
        match self.call_once(target, &request, cancel.clone()).await {
            Err(error) if providers::refuses_form(&error) => {
                tracing::info!(model = %target, %error, "the model is asked in plain text");
                self.call_once(target, &Request { shape: None, ..request }, cancel).await
            }
            called => called,
        }
    }

    /// How long to wait before one more try after `error`; `None`: there is no sense in it.
    #[must_use]
    pub fn patience(&self, error: &CallError) -> Option<Duration> {
        self.policy.wait(error, 1, (self.chance)())
    }

    async fn call_by(
        &self,
        policy: Policy,
        target: &Target,
        request: &Request,
        hear: Hear<'_>,
        cancel: CancellationToken,
    ) -> Result<Reply, CallError> {
        let provider = self.provider(&target.provider).ok_or_else(|| {
            CallError::new(Class::NotFound, format!("there is no provider {:?}", target.provider))
                .hint("`chorusctl models` lists what there is")
        })?;
        let (transport, key) = self.reach(&provider).await?;
        let request = &*bounded(request, provider.max_output_tokens);
        let call = Call {
            transport,
            provider: &provider,
            key,
            model: &target.model,
            request,
            hear,
            policy,
            chance: &self.chance,
            clock: &self.clock,
            redactor: &self.redactor,
        };
        let mut reply = match call.run(providers::of(provider.kind), &cancel).await {
            Ok(reply) => reply,
            Err(mut error) => {
                if let (Some(usage), Some(price)) = (&mut error.usage, self.price_of(target)) {
                    usage.cost_usd = usage.cost_usd.or_else(|| Some(super::reply::cost(&price, usage, None)));
                }
                return Err(error);
            }
        };
        // What a provider says that this very call cost is better than its list, but not than what somebody configured.
        let told = reply.usage.cost_usd.is_some() && !self.prices.contains_key(&target.to_string());
        // Of tokens that nobody has counted the price is not known; the account estimates them.
        let counted = reply.usage.input_tokens.is_some() || reply.usage.output_tokens.is_some();
        if let Some(price) = self.price_of(target).filter(|_| !told && counted) {
            reply.usage.cost_usd = Some(super::reply::cost(&price, &reply.usage, reply.cache_write_tokens));
        }
        Ok(reply)
    }

    /// How many tokens a model takes, prompt and answer together, where that is known.
    #[must_use]
    pub fn window_of(&self, target: &Target) -> Option<u64> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let model = found.provider(&target.provider).and_then(|provider| provider.model(&target.model));
        model.and_then(|model| model.context_length).or_else(|| {
            let kind = self.configured.get(&target.provider).map(|provider| provider.kind);
            (kind == Some(Kind::Anthropic) && target.model.starts_with("claude-")).then_some(CLAUDE_WINDOW)
        })
    }

    /// Returns false where a model is known to take no images: its server lists that, or has refused one.
    #[must_use]
    pub fn takes_images(&self, target: &Target) -> bool {
        if self.learned.is_blind(target) {
            return false;
        }
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let model = found.provider(&target.provider).and_then(|provider| provider.model(&target.model));
        model.and_then(|model| model.images) != Some(false)
    }

    /// Returns the longest answer that a model is asked for in a turn, in tokens, before its window bounds it.
    ///
    /// Where the window is not known, `shown` stands for it, the tokens that the model is shown at most: a server of somebody's own
    /// may be slow, and an answer that nothing ends would take minutes. A service on the Internet bounds answers by itself.
    #[must_use]
    pub fn longest_answer(&self, target: &Target, shown: u64) -> u64 {
        let configured = self.provider(&target.provider).and_then(|provider| provider.max_output_tokens);
        if let Some(configured) = configured {
            return configured;
        }
        if self.is_own(target) && self.window_of(target).is_none() {
            USUAL_ANSWER.min(shown / 5).max(1)
        } else {
            USUAL_ANSWER
        }
    }

    /// Returns true for a server of somebody's own, which may be slow and take one request at a time: what is on the Internet is
    /// reached by TLS.
    #[must_use]
    pub fn is_own(&self, target: &Target) -> bool {
        self.provider(&target.provider).is_some_and(|provider| provider.base_url.starts_with("http://"))
    }

    /// Whether the provider of `target` takes what somebody attaches.
    ///
    /// # Errors
    /// `invalid_params` with the first image that it would refuse the conversation for.
    pub fn takes(&self, target: &Target, attachments: &[Attachment]) -> Result<()> {
        let refused = attachments.iter().find_map(|file| Some((file, self.unfit(target, file)?)));
        match refused {
            None => Ok(()),
            Some((file, why)) => {
                let hint = if self.takes_images(target) {
                    "attach it as a smaller PNG or JPEG image, or choose a model that looks at images"
                } else {
                    "choose a model that looks at images: chorusctl agent config NAME model PROVIDER/MODEL"
                };
                Err(Failure::invalid(format!("{} cannot be shown to {target}: {why}", file.name)).hint(hint))
            }
        }
    }

    /// Why `target` would not be shown an image that somebody attaches; `None`: it is no image, or it would, as far as is known.
    #[must_use]
    pub fn unfit(&self, target: &Target, attachment: &Attachment) -> Option<String> {
        if providers::images::has_bytes(attachment) && !self.takes_images(target) {
            return Some("the model looks at no images".into());
        }
        let Provider { kind, .. } = self.provider(&target.provider)?;
        providers::images::problem(attachment, kind)
    }

    /// What a model costs: as configured, else as its provider tells.
    #[must_use]
    pub fn price_of(&self, target: &Target) -> Option<Price> {
        self.prices.get(&target.to_string()).copied().or_else(|| {
            let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
            found.provider(&target.provider)?.model(&target.model)?.price
        })
    }

    /// What the last discovery found.
    #[must_use]
    pub fn available(&self) -> Available {
        self.found.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many models the last discovery found.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.found.read().unwrap_or_else(PoisonError::into_inner).count()
    }

    /// Whether each configured provider has its key. Reads files: blocks.
    #[must_use]
    pub fn keys(&self) -> Vec<KeyFound> {
        self.configured.values().map(key::look).collect()
    }

    /// Returns the origin of the key that is sent to a provider, in words; `None`: it is sent none.
    #[must_use]
    pub fn key_from(&self, provider: &str) -> Option<String> {
        self.configured.get(provider).and_then(key::source)
    }

    /// Asks every provider which models it has, and looks for local servers where that is configured; no paid call. What
    /// was found is kept in the home.
    pub async fn discover(&self) -> Available {
        if self.configured.is_empty() && self.local.is_empty() {
            return self.available();
        }
        let _alone = self.discovering.lock().await;
        let before = self.available();
        let found = discovery::discover(self, &before).await;
        self.found.write().unwrap_or_else(PoisonError::into_inner).clone_from(&found);
        self.learned.forget();
        let (file, kept) = (self.file.clone(), found.clone());
        let written = tokio::task::spawn_blocking(move || discovery::keep(&file, &kept)).await;
        if let Ok(Err(e)) = written {
            tracing::warn!("{FILE} cannot be written: {e}");
        }
        for provider in found.providers.iter().filter(|provider| provider.found == Found::Failed) {
            let problem = provider.problem.as_deref().unwrap_or_default();
            tracing::warn!(provider = %provider.name, problem, "its models cannot be listed");
        }
        found
    }

    pub(super) fn configured(&self) -> impl Iterator<Item = &Provider> {
        self.configured.values()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn local(&self) -> &[Local] {
        &self.local
    }

    /// Names of all providers, local servers that were found included.
    fn names(&self) -> Vec<String> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let local = found.providers.iter().filter(|provider| provider.local).map(|provider| &provider.name);
        self.configured.keys().chain(local).cloned().collect()
    }

    fn provider(&self, name: &str) -> Option<Provider> {
        self.configured.get(name).cloned().or_else(|| {
            let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
            let local = found.provider(name).filter(|provider| provider.local)?;
            Some(discovery::local_provider(&local.name, &local.base_url))
        })
    }

    /// The way to a provider and its key.
    pub(super) async fn reach(&self, provider: &Provider) -> Result<(Transport, Option<Secret>), CallError> {
        let kind = transport::client_kind(provider);
        let known = self.clients.lock().unwrap_or_else(PoisonError::into_inner).get(&kind).cloned();
        let at = provider.clone();
        // The key may be in a file, and a first client reads the machine's certificates.
        let made = tokio::task::spawn_blocking(move || {
            let key = key::read(&at)?;
            let client = known.map_or_else(|| transport::client(kind), Ok)?;
            Ok((client, key))
        });
        let (client, key) = made.await.map_err(|e| CallError::new(Class::Network, e.to_string()))??;
        if let Some(key) = &key {
            self.redactor.learn(key);
        }
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_insert_with(|| client.clone());
        Ok((Transport::new(client, provider), key))
    }
}

/// The request with the longest answer that is configured.
fn bounded(request: &Request, most: Option<u64>) -> Cow<'_, Request> {
    let most = most.map_or(u32::MAX, |most| u32::try_from(most).unwrap_or(u32::MAX));
    if request.max_tokens <= most {
        return Cow::Borrowed(request);
    }
    Cow::Owned(Request { max_tokens: most, ..request.clone() })
}

/// The randomness of a new UUID, which comes from the system.
fn chance() -> f64 {
    let word = (uuid::Uuid::new_v4().as_u128() >> 96) as u32;
    f64::from(word) / (f64::from(u32::MAX) + 1.0)
}
