//! Redacts the tool calls of a reply.

use chorus_proto::ToolCall;

use super::redactor::Redactor;

/// Redacts the parameters of `calls` for storage. The tools run with the original parameters.
#[must_use]
pub fn redact_tool_calls(calls: &[ToolCall], redactor: &Redactor) -> Vec<ToolCall> {
    let kept = |call: &ToolCall| ToolCall {
        params: redactor.redact_raw_value(&call.params).unwrap_or_else(|| call.params.clone()),
        ..call.clone()
    };
    calls.iter().map(kept).collect()
}
