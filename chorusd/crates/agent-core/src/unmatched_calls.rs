//! Matches tool calls with their results. Ids are matched between one assistant message and the results that directly
//! follow it, a result with the first unmatched call of its id: two calls of one reply may have the same id.

use chorus_proto::ToolCall;
use chorus_session::stored_message::StoredMessage;

/// Returns the calls that have no result among `results`.
#[must_use]
pub fn calls_without_result(mut calls: Vec<ToolCall>, results: &[StoredMessage]) -> Vec<ToolCall> {
    let mut given: Vec<String> = results.iter().filter_map(|result| result.to_message().ok()?.tool_call_id).collect();
    let lacks = |call: &ToolCall| match given.iter().position(|id| *id == call.id) {
        Some(at) => {
            given.swap_remove(at);
            false
        }
        None => true,
    };
    calls.retain(lacks);
    calls
}
