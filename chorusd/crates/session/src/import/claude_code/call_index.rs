//! Collects the usage of model calls, also of those on branches that were abandoned. The lines of a reply repeat the usage
//! of its call.

use std::collections::HashMap;
use std::num::NonZeroU8;
use std::sync::Arc;

use chorus_proto::Usage;
use jiff::Timestamp;

use super::super::imported_call::{ImportedCall, call_key};
use super::line::{Program, Speaker, TranscriptMessage};

/// A model call, in half the size of an [`ImportedCall`]: a long transcript has very many.
#[derive(Debug, Clone, Copy)]
struct IndexedCall {
    key: u64,
    at_nanos: i64,
    /// 0 if the program recorded none.
    cost_usd: f64,
    input_tokens: u32,
    output_tokens: u32,
    cache_read_tokens: u32,
    cache_write_tokens: u32,
    /// The first node of the call.
    node: u32,
    /// Index of the model's name.
    model: Option<NonZeroU8>,
    is_lower_bound: bool,
}

/// The model calls of a transcript.
#[derive(Debug, Default)]
pub(super) struct CallIndex {
    /// In the order of their nodes.
    calls: Vec<IndexedCall>,
    /// Emptied by [`Self::finish`].
    by_key: HashMap<u64, u32>,
    /// Index 0 is not used.
    models: Vec<Arc<str>>,
}

impl CallIndex {
    /// Adds the line of `node`, if it is of a reply.
    pub(super) fn add_line(&mut self, node: u32, uuid: Option<&str>, talk: &TranscriptMessage<'_>, now: Timestamp) {
        let (Speaker::Assistant, Some(id)) = (talk.speaker, talk.reply.as_deref().or(uuid)) else { return };
        let call = ImportedCall {
            key: call_key(&[id.as_bytes()]),
            at: talk.timestamp.unwrap_or(now),
            cache_write_tokens: talk.cache_write,
            is_lower_bound: talk.is_partial,
            ..ImportedCall::default()
        };
        let Some(call) = call.with_usage(&whole_usage(talk)) else { return };
        let model = talk.model.as_deref().and_then(|model| self.model_number(model));
        let call = IndexedCall::new(node, model, &call);
        match self.by_key.get(&call.key) {
            Some(at) => self.calls[*at as usize].merge(&call),
            None => {
                self.by_key.insert(call.key, self.calls.len() as u32);
                self.calls.push(call);
            }
        }
    }

    /// Frees what only [`Self::add_line`] needs.
    pub(super) fn finish(&mut self) {
        self.by_key = HashMap::new();
        self.calls.shrink_to_fit();
    }

    /// Returns the call that begins with a node.
    pub(super) fn get(&self, node: u32) -> Option<ImportedCall> {
        let at = self.calls.binary_search_by_key(&node, |call| call.node).ok()?;
        Some(self.expand(&self.calls[at]))
    }

    /// Returns all calls with their nodes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, ImportedCall)> {
        self.calls.iter().map(|call| (call.node, self.expand(call)))
    }

    fn expand(&self, call: &IndexedCall) -> ImportedCall {
        ImportedCall {
            key: call.key,
            at: Timestamp::from_nanosecond(call.at_nanos.into()).unwrap_or_default(),
            model: call.model.and_then(|number| self.models.get(usize::from(number.get()))).cloned(),
            input_tokens: call.input_tokens.into(),
            output_tokens: call.output_tokens.into(),
            cache_read_tokens: call.cache_read_tokens.into(),
            cache_write_tokens: call.cache_write_tokens.into(),
            cost_usd: Some(call.cost_usd).filter(|cost| *cost > 0.0),
            is_lower_bound: call.is_lower_bound,
            calls: 1,
        }
    }

    /// Returns the number of a model's name. A transcript names few; those beyond 255 have none.
    fn model_number(&mut self, model: &str) -> Option<NonZeroU8> {
        if self.models.is_empty() {
            self.models.push("".into());
        }
        let known = self.models.iter().rposition(|known| known.as_ref() == model);
        let number = known.unwrap_or(self.models.len());
        if number == self.models.len() && number <= usize::from(u8::MAX) {
            self.models.push(model.into());
        }
        u8::try_from(number).ok().and_then(NonZeroU8::new)
    }
}

impl IndexedCall {
    /// Token counts beyond 4 billion, which no call has, become the largest that fits.
    fn new(node: u32, model: Option<NonZeroU8>, call: &ImportedCall) -> Self {
        let count = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
        Self {
            key: call.key,
            at_nanos: call.at.as_nanosecond().clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            cost_usd: call.cost_usd.unwrap_or(0.0),
            input_tokens: count(call.input_tokens),
            output_tokens: count(call.output_tokens),
            cache_read_tokens: count(call.cache_read_tokens),
            cache_write_tokens: count(call.cache_write_tokens),
            node,
            model,
            is_lower_bound: call.is_lower_bound,
        }
    }

    /// Takes over the counts of another line of this call: the larger ones are the later ones.
    fn merge(&mut self, other: &Self) {
        self.input_tokens = self.input_tokens.max(other.input_tokens);
        self.output_tokens = self.output_tokens.max(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.max(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.max(other.cache_write_tokens);
        self.cost_usd = self.cost_usd.max(other.cost_usd);
        self.is_lower_bound &= other.is_lower_bound;
        self.model = self.model.or(other.model);
    }
}

/// Returns the usage of a line. Anthropic's API leaves the cached tokens out of the input.
fn whole_usage(talk: &TranscriptMessage<'_>) -> Usage {
    let usage = talk.cost.clone();
    if talk.program == Program::QwenCode {
        return usage;
    }
    let cached = usage.cache_read_tokens.unwrap_or(0).saturating_add(talk.cache_write);
    Usage { input_tokens: Some(usage.input_tokens.unwrap_or(0).saturating_add(cached)), ..usage }
}
