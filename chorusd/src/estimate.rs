//! How many tokens something is, guessed from its length: every budget is measured by this. What a provider counts is
//! known only after a call; `usage::Calibration` says by how much its models differ.
//!
//! A token is taken to be four bytes of UTF-8: four letters of English, two of Greek or Cyrillic, and rather more than one
//! character of Chinese, Japanese or Korean, which is about what the vocabularies in use make of them.

use std::sync::Arc;

use chorus_proto::{Attachment, Message, Role, SourceKind};

use crate::agent::window::is_named;
use crate::llm::{Request, ToolSpec};

/// What stands around a message: its role, and the marks where it begins and ends.
const AROUND: u64 = 4;
/// What stands around a call or a tool besides its name and parameters, an id for example.
const CALL: u64 = 12;
/// An image of usual size; providers count between 85 and 1,600.
const IMAGE: u64 = 1200;
/// Bytes of the name of an author, about.
const LONGEST_NAME: usize = 64;
/// The name, type and size of a file that no model looks at.
const FILE: u64 = 20;

/// A text of so many bytes.
#[must_use]
pub fn bytes(length: u64) -> u64 {
    length.div_ceil(4)
}

/// A text.
#[must_use]
pub fn text(text: &str) -> u64 {
    bytes(text.len() as u64)
}

/// What a message is made of, as far as its length goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// Of its content, and of the names and parameters of its calls.
    pub bytes: u64,
    pub calls: u64,
    pub images: u64,
    /// Other attachments.
    pub files: u64,
}

impl Parts {
    /// Those of a message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        let mut parts = Self { bytes: message.content.len() as u64, ..Self::default() };
        for call in &message.tool_calls {
            parts.call(&call.name, call.params.get());
        }
        for Attachment { media_type, .. } in &message.attachments {
            parts.attachment(media_type.as_deref());
        }
        if let Some(author) = &message.author {
            parts.author(message.role, message.source.as_ref().map(|source| source.kind), &author.name);
        }
        parts
    }

    /// Its author, where they are named.
    pub fn author(&mut self, role: Role, source: Option<SourceKind>, name: &str) {
        if is_named(role, source) {
            self.bytes += name.len().min(LONGEST_NAME) as u64 + 3;
        }
    }

    /// One more call.
    pub fn call(&mut self, name: &str, params: &str) {
        self.calls += 1;
        self.bytes += (name.len() + params.len()) as u64;
    }

    /// One more attachment.
    pub fn attachment(&mut self, media_type: Option<&str>) {
        let image = media_type.is_some_and(|kind| kind.starts_with("image/") && kind != "image/svg+xml");
        *(if image { &mut self.images } else { &mut self.files }) += 1;
    }

    /// Tokens of the whole message.
    #[must_use]
    pub fn tokens(self) -> u64 {
        AROUND + bytes(self.bytes) + CALL * self.calls + IMAGE * self.images + FILE * self.files
    }
}

/// One piece of the system prompt, of so many bytes.
#[must_use]
pub fn piece(length: u64) -> u64 {
    AROUND + bytes(length)
}

/// A whole request.
#[must_use]
pub fn request(request: &Request) -> u64 {
    let system = request.system.iter().map(|text| piece(text.len() as u64));
    let messages = request.messages.iter().map(|message| Parts::of(message).tokens());
    system.chain(messages).sum::<u64>() + tools(&request.tools)
}

/// The tools that a model is shown.
#[must_use]
pub fn tools(tools: &[Arc<ToolSpec>]) -> u64 {
    tools.iter().map(|spec| tool(spec)).sum()
}

/// One of them.
#[must_use]
pub fn tool(tool: &ToolSpec) -> u64 {
    CALL + bytes((tool.name.len() + tool.description.len() + tool.parameters.to_string().len()) as u64)
}

#[cfg(test)]
mod tests;
