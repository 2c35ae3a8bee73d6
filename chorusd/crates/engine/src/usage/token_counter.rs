//! Counts the tokens of a prompt before it is sent: with the model's own vocabulary where that is known, else from what
//! the provider counted for the beginning of the same prompt, else by the calibrated estimate.
//!
//! Nothing is counted twice. The tokens of a message are cached by its content, and what a provider counted is kept for
//! the prompt that it counted, so that only the messages behind it are new.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_base::sync::Mutex;
use chorus_llm::tokenizer::{Tokenizer, TokenizerCache};
use chorus_llm::{ModelRef, ModelRequest, Models, has_tokenizer};
use chorus_proto::{Message, TokenSource};
use chorus_session::token_estimate::MessageSize;
use chorus_store::Store;
use uuid::Uuid;

use super::recent_map::RecentMap;
use crate::lifecycle::malloc_trim;

/// How long a provider may take to count.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a provider is not asked again after it failed to count.
const COUNT_PAUSE: Duration = Duration::from_secs(300);
/// The tokenizer is released if nobody used it for this long.
const TOKENIZER_IDLE: Duration = Duration::from_secs(300);
/// Prompts of an agent whose counts are kept.
const MAX_PROMPTS_PER_AGENT: usize = 8;
/// Agents whose counts are kept.
const MAX_AGENTS: usize = 4096;
/// A count of a provider is that of the whole prompt if at most this part of it, in percent, was estimated.
const MAX_ESTIMATED_PERCENT: u64 = 20;

/// The tokens of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptCount {
    pub tokens: u64,
    pub source: TokenSource,
}

/// Hashes that identify a prompt and each of its beginnings.
#[derive(Debug, Clone)]
pub struct PromptFingerprint {
    /// Of each message alone.
    messages: Vec<u64>,
    /// Of model, system prompt and tools; then of that with the first message, with the first two, and so on.
    prefixes: Vec<u64>,
}

/// Counts the tokens of prompts.
pub struct TokenCounter {
    models: Arc<Models>,
    store: Arc<Store>,
    tokenizer: TokenizerCache,
    /// With random keys, so that nobody can choose texts that collide.
    hasher: RandomState,
    /// Tokens of messages and prompt heads by their hashes, counted with the tokenizer.
    exact: Mutex<RecentMap>,
    /// What providers counted: for each agent the hashes of its last prompts with their tokens, the newest last.
    counted: Mutex<HashMap<Uuid, VecDeque<(u64, u64)>>>,
    /// When providers failed to count.
    failures: Mutex<HashMap<String, Instant>>,
}

impl std::fmt::Debug for TokenCounter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenCounter")
    }
}

impl TokenCounter {
    #[must_use]
    pub fn new(models: Arc<Models>, store: Arc<Store>) -> Self {
        Self {
            models,
            store,
            tokenizer: TokenizerCache::default(),
            hasher: RandomState::new(),
            exact: Mutex::default(),
            counted: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Returns true if [`TokenCounter::count`] may know more than the estimate.
    #[must_use]
    pub fn may_know(&self, agent: Uuid, target: &ModelRef) -> bool {
        has_tokenizer(&target.model) || self.counted.lock().contains_key(&agent)
    }

    /// Computes the fingerprint of a prompt. Its cost is that of reading the prompt once.
    #[must_use]
    pub fn fingerprint(&self, target: &ModelRef, request: &ModelRequest) -> PromptFingerprint {
        let mut head = self.hasher.build_hasher();
        (&target.provider, &target.model, &request.system, request.forbid_tool_calls).hash(&mut head);
        for tool in &request.tools {
            (&tool.name, &tool.description).hash(&mut head);
        }
        let messages: Vec<u64> = request.messages.iter().map(|message| self.hash_message(message)).collect();
        let mut prefixes = vec![head.finish()];
        for message in &messages {
            let prefix = self.hasher.hash_one((prefixes.last(), message));
            prefixes.push(prefix);
        }
        PromptFingerprint { messages, prefixes }
    }

    fn hash_message(&self, message: &Message) -> u64 {
        let mut hash = self.hasher.build_hasher();
        (message.role as u8, &message.content, &message.tool_call_id, message.is_error).hash(&mut hash);
        for call in &message.tool_calls {
            (&call.id, &call.name, call.params.get()).hash(&mut hash);
        }
        for file in &message.attachments {
            (&file.name, &file.media_type, &file.data).hash(&mut hash);
        }
        message.provider.as_ref().map(|raw| raw.get()).hash(&mut hash);
        hash.finish()
    }

    /// Counts a prompt. `ratio` is the calibration of the model. `load` loads the tokenizer if it is not loaded yet,
    /// which takes a tenth of a second. Blocks.
    #[must_use]
    pub fn count(
        self: &Arc<Self>,
        agent: Uuid,
        target: &ModelRef,
        (request, print): (&ModelRequest, &PromptFingerprint),
        ratio: Option<f64>,
        load: bool,
    ) -> PromptCount {
        let known = self.longest_counted_prefix(agent, print);
        let from = known.map_or(0, |(messages, _)| messages);
        let (rest, hashes) = (&request.messages[from..], &print.messages[from..]);
        if let Some((_, tokens)) = known.filter(|_| rest.is_empty()) {
            return PromptCount { tokens, source: TokenSource::Provider };
        }
        if let Some(tokenizer) = self.tokenizer_for(target, load)
            && let Some(rest) = self.exact_tokens(&tokenizer, rest, hashes)
        {
            let head = known.map_or_else(|| self.exact_head(&tokenizer, request, print), |(_, tokens)| tokens);
            return PromptCount { tokens: head + rest, source: TokenSource::Exact };
        }
        let calibrate = |tokens: u64| (tokens as f64 * ratio.unwrap_or(1.0)).round() as u64;
        let Some((_, tokens)) = known else {
            let tokens = calibrate(chorus_llm::tokens_of_request(request));
            return PromptCount { tokens, source: TokenSource::Estimated };
        };
        let rest = calibrate(rest.iter().map(|message| MessageSize::of_message(message).tokens()).sum());
        let is_small = rest * 100 <= (tokens + rest) * MAX_ESTIMATED_PERCENT;
        PromptCount {
            tokens: tokens + rest,
            source: if is_small { TokenSource::Provider } else { TokenSource::Estimated },
        }
    }

    /// Stores how many tokens the provider counted for a prompt.
    pub fn record(&self, agent: Uuid, print: &PromptFingerprint, tokens: u64) {
        let Some(hash) = print.prefixes.last().copied().filter(|_| tokens > 0) else { return };
        let mut counted = self.counted.lock();
        if counted.len() >= MAX_AGENTS && !counted.contains_key(&agent) {
            counted.clear();
        }
        let prompts = counted.entry(agent).or_default();
        prompts.retain(|(known, _)| *known != hash);
        if prompts.len() == MAX_PROMPTS_PER_AGENT {
            prompts.pop_front();
        }
        prompts.push_back((hash, tokens));
    }

    /// Asks the provider for its count, unless it is known, and stores it. Takes at most two seconds. `None` if the
    /// provider cannot count; if it failed to, it is not asked again for a while.
    pub async fn ask_provider(
        &self,
        agent: Uuid,
        target: &ModelRef,
        request: &ModelRequest,
        print: &PromptFingerprint,
    ) -> Option<PromptCount> {
        let counted = |tokens| Some(PromptCount { tokens, source: TokenSource::Provider });
        if let Some((messages, tokens)) = self.longest_counted_prefix(agent, print)
            && messages == print.messages.len()
        {
            return counted(tokens);
        }
        let failed = self.failures.lock().get(&target.provider).copied();
        if !self.models.can_count(target) || failed.is_some_and(|at| at.elapsed() < COUNT_PAUSE) {
            return None;
        }
        match self.models.count_tokens(target, request, COUNT_TIMEOUT).await {
            Ok(tokens) => {
                self.record(agent, print, tokens);
                counted(tokens)
            }
            Err(error) => {
                tracing::debug!(model = %target, %error, "the provider did not count the tokens");
                self.failures.lock().insert(target.provider.clone(), Instant::now());
                None
            }
        }
    }

    /// Returns the longest beginning of the prompt that the provider counted: its number of messages, and its tokens.
    fn longest_counted_prefix(&self, agent: Uuid, print: &PromptFingerprint) -> Option<(usize, u64)> {
        let counted = self.counted.lock();
        let prompts = counted.get(&agent)?;
        let found = |(messages, prefix): (usize, &u64)| {
            let (_, tokens) = prompts.iter().rev().find(|(hash, _)| hash == prefix)?;
            Some((messages, *tokens))
        };
        print.prefixes.iter().enumerate().rev().find_map(found)
    }

    fn tokenizer_for(self: &Arc<Self>, target: &ModelRef, load: bool) -> Option<Arc<Tokenizer>> {
        if !has_tokenizer(&target.model) {
            return None;
        }
        if !load {
            return self.tokenizer.loaded();
        }
        let (tokenizer, is_new) = self.tokenizer.load()?;
        if is_new {
            self.release_when_unused();
        }
        Some(tokenizer)
    }

    fn release_when_unused(self: &Arc<Self>) {
        let counter = Arc::downgrade(self);
        chorus_runtime::spawn(async move {
            loop {
                tokio::time::sleep(TOKENIZER_IDLE).await;
                let Some(counter) = counter.upgrade() else { return };
                if counter.tokenizer.release_unused(TOKENIZER_IDLE) {
                    malloc_trim::schedule_trim(&counter.store);
                    return;
                }
            }
        });
    }

    /// Returns the tokens of messages, or `None` if one of them has a file.
    fn exact_tokens(&self, tokenizer: &Tokenizer, messages: &[Message], hashes: &[u64]) -> Option<u64> {
        let one = |(message, hash): (&Message, &u64)| {
            if let Some(tokens) = self.exact.lock().get(*hash) {
                return Some(u64::from(tokens));
            }
            let tokens = tokenizer.count_message(message)?;
            self.exact.lock().insert(*hash, u32::try_from(tokens).unwrap_or(u32::MAX));
            Some(tokens)
        };
        messages.iter().zip(hashes).map(one).sum()
    }

    fn exact_head(&self, tokenizer: &Tokenizer, request: &ModelRequest, print: &PromptFingerprint) -> u64 {
        let Some(hash) = print.prefixes.first().copied() else { return 0 };
        if let Some(tokens) = self.exact.lock().get(hash) {
            return tokens.into();
        }
        let tokens = tokenizer.count_head(&request.system, &request.tools);
        self.exact.lock().insert(hash, u32::try_from(tokens).unwrap_or(u32::MAX));
        tokens
    }
}
