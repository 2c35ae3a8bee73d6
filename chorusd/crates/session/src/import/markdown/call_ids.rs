//! Pairs the results of tools with the calls, in files that do not have their ids.

use std::collections::VecDeque;

use chorus_proto::{NewMessage, Role};

/// Calls that have no result yet, in their order.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(VecDeque<(String, String)>);

impl OpenCalls {
    /// Remembers the calls of a message; gives a result the id of the first open call of its tool.
    pub(super) fn pair(&mut self, message: &mut NewMessage) {
        match message.role {
            Role::ToolResult if message.tool_call_id.is_none() => {
                let fits = |(_, name): &(String, String)| message.name.as_ref().is_none_or(|wanted| wanted == name);
                let call = self.0.iter().position(fits).and_then(|at| self.0.remove(at));
                message.tool_call_id = call.map(|(id, _)| id);
            }
            Role::ToolResult => {}
            Role::User => self.0.clear(),
            _ => self.0.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone()))),
        }
    }
}
