//! The usage of the model calls of a file, with those of subagents and of replies that were rewound.

use jiff::Timestamp;

use super::event::parse_usage;
use crate::import::imported_call::{ImportedCall, call_key};
use crate::import::json_values::parse_timestamp;
use crate::import::raw_object::RawObject;

/// The records so far.
#[derive(Debug, Default)]
pub(super) struct CallRecords {
    calls: Vec<ImportedCall>,
    has_records: bool,
}

impl CallRecords {
    /// Adds the record of a call.
    pub(super) fn add_record(&mut self, event: &RawObject<'_>, usage: &RawObject<'_>) {
        self.has_records = true;
        let accounting = usage.get("accounting").and_then(RawObject::from_value);
        let of_session = accounting.and_then(|of| Some((of.get_text("sourceSessionId")?, of.get_u64("sequence")?)));
        // A fork copies the records of its parent.
        let key = match of_session {
            Some((session, sequence)) => call_key(&[session.as_bytes(), &sequence.to_le_bytes()]),
            None => call_key(&[event.get_text("id").unwrap_or_default().as_bytes()]),
        };
        self.add(event, key, usage, usage.get_text("model").as_deref(), 1);
    }

    /// Adds what a run used, by model. Versions that record the calls repeat the usage of the whole session here.
    pub(super) fn add_shutdown(&mut self, event: &RawObject<'_>, data: &RawObject<'_>) {
        let Some(models) = data.get("modelMetrics").and_then(RawObject::from_value).filter(|_| !self.has_records)
        else {
            return;
        };
        for (model, metrics) in models.iter() {
            let Some(metrics) = RawObject::from_value(metrics) else { continue };
            let Some(usage) = metrics.get("usage").and_then(RawObject::from_value) else { continue };
            let requests = metrics.get("requests").and_then(RawObject::from_value);
            let count = requests.and_then(|requests| requests.get_u64("count"));
            let key = call_key(&[event.get_text("id").unwrap_or_default().as_bytes(), model.as_bytes()]);
            self.add(event, key, &usage, Some(model), count.unwrap_or(1));
        }
    }

    fn add(&mut self, event: &RawObject<'_>, key: u64, usage: &RawObject<'_>, model: Option<&str>, calls: u64) {
        let at = event.get("timestamp").and_then(parse_timestamp).unwrap_or(Timestamp::UNIX_EPOCH);
        let call = ImportedCall { key, at, model: model.map(Into::into), calls, ..ImportedCall::default() };
        let cache_write_tokens = usage.get_u64("cacheWriteTokens").unwrap_or(0);
        self.calls.extend(call.with_usage(&parse_usage(usage)).map(|call| ImportedCall { cache_write_tokens, ..call }));
    }

    pub(super) fn into_calls(self) -> Vec<ImportedCall> {
        self.calls
    }
}
