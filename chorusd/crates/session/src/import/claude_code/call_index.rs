//! Collects the usage of model calls, also of those on branches that were abandoned. The lines of a reply repeat the usage
//! of its call.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_proto::Usage;
use jiff::Timestamp;

use super::super::imported_call::{ImportedCall, call_key};
use super::line::{Program, Speaker, TranscriptMessage};

/// The model calls of a transcript.
#[derive(Debug, Default)]
pub(super) struct CallIndex {
    /// The first node of each call, in the order of the nodes.
    calls: Vec<(u32, ImportedCall)>,
    by_key: HashMap<u64, usize>,
    model: Option<Arc<str>>,
}

impl CallIndex {
    /// Adds the line of `node`, if it is of a reply.
    pub(super) fn add_line(&mut self, node: u32, uuid: Option<&str>, talk: &TranscriptMessage<'_>, now: Timestamp) {
        let (Speaker::Assistant, Some(id)) = (talk.speaker, talk.reply.as_deref().or(uuid)) else { return };
        let call = ImportedCall {
            key: call_key(&[id.as_bytes()]),
            at: talk.timestamp.unwrap_or(now),
            model: talk.model.as_deref().map(|model| self.intern(model)),
            cache_write_tokens: talk.cache_write,
            is_lower_bound: talk.is_partial,
            ..ImportedCall::default()
        };
        let Some(call) = call.with_usage(&whole_usage(talk)) else { return };
        match self.by_key.get(&call.key) {
            Some(at) => self.calls[*at].1.merge(&call),
            None => {
                self.by_key.insert(call.key, self.calls.len());
                self.calls.push((node, call));
            }
        }
    }

    /// Returns the call that begins with a node.
    pub(super) fn get(&self, node: u32) -> Option<&ImportedCall> {
        let at = self.calls.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        Some(&self.calls[at].1)
    }

    /// Returns all calls with their nodes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &ImportedCall)> {
        self.calls.iter().map(|(node, call)| (*node, call))
    }

    /// Shares the names of models, which are few.
    fn intern(&mut self, model: &str) -> Arc<str> {
        match &self.model {
            Some(known) if known.as_ref() == model => known.clone(),
            _ => self.model.insert(model.into()).clone(),
        }
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
