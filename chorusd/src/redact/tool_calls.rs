//! What is kept of a model's calls.

use chorus_proto::ToolCall;

use super::redactor::Redactor;

/// `calls` as the record has them. What runs is the calls themselves.
#[must_use]
pub fn redact_tool_calls(calls: &[ToolCall], redactor: &Redactor) -> Vec<ToolCall> {
    let kept = |call: &ToolCall| ToolCall {
        params: redactor.redact_raw_value(&call.params).unwrap_or_else(|| call.params.clone()),
        ..call.clone()
    };
    calls.iter().map(kept).collect()
}
