//! One message, line by line.

use chorus_proto::{NewMessage, Role, ToolCall};
use serde_json::value::RawValue;

use super::super::lines::LONGEST;
use super::super::values::{one_line, string};
use crate::session::markdown::{Block, Heading, MESSAGE, commented};

/// The lines of one message.
#[derive(Debug)]
pub(super) struct Reader {
    /// Line of the heading.
    pub number: u64,
    heading: Heading,
    /// Lines after the heading so far.
    lines: u64,
    besides: Option<NewMessage>,
    /// Lines outside of blocks, each with its end; those after the first block apart.
    text: String,
    after: String,
    content: Option<String>,
    calls: Vec<ToolCall>,
    block: Option<(String, Block, Vec<String>)>,
    skipped: Vec<(u64, String)>,
    size: u64,
}

/// What became of the lines.
#[derive(Debug)]
pub(super) struct Finished {
    /// `None`: it is too long.
    pub message: Option<NewMessage>,
    pub skipped: Vec<(u64, String)>,
}

impl Reader {
    pub fn new(heading: Heading, number: u64) -> Self {
        Self {
            number,
            heading,
            lines: 0,
            besides: None,
            text: String::new(),
            after: String::new(),
            content: None,
            calls: Vec::new(),
            block: None,
            skipped: Vec::new(),
            size: 0,
        }
    }

    /// Whether the next line is inside a fenced block, whatever it looks like.
    pub fn in_block(&self) -> bool {
        self.block.is_some()
    }

    /// Takes the next line, without its end.
    pub fn line(&mut self, line: &str) {
        self.lines += 1;
        self.size += line.len() as u64 + 1;
        if self.size > LONGEST {
            return;
        }
        if let Some((fence, _, inside)) = &mut self.block {
            if line.trim_end() == fence {
                self.close();
            } else {
                inside.push(line.to_owned());
            }
            return;
        }
        if self.lines == 1
            && let Some(json) = commented(MESSAGE, line)
        {
            match serde_json::from_str(json) {
                Ok(besides) => self.besides = Some(besides),
                Err(error) => self.skipped.push((self.number + 1, format!("the comment cannot be read: {error}"))),
            }
            return;
        }
        if let Some((fence, block)) = Block::parse(line) {
            self.block = Some((fence.to_owned(), block, Vec::new()));
            return;
        }
        let text = if self.content.is_none() && self.calls.is_empty() { &mut self.text } else { &mut self.after };
        text.push_str(line);
        text.push('\n');
    }

    fn close(&mut self) {
        let Some((_, block, inside)) = self.block.take() else { return };
        let inside = inside.join("\n");
        match block {
            Block::Content if self.content.is_none() => self.content = Some(inside),
            Block::Content => self.after.push_str(&inside),
            Block::Call { id, name } => {
                let params = RawValue::from_string(inside.trim().to_owned()).map(|raw| one_line(&raw));
                let params = params.unwrap_or_else(|_| {
                    let line = self.number + self.lines;
                    self.skipped.push((line, "the parameters of a call are no JSON; they are kept as a text".into()));
                    string(&inside)
                });
                self.calls.push(ToolCall { id, name, params });
            }
        }
    }

    /// The message.
    pub fn finish(mut self) -> Finished {
        if self.size > LONGEST {
            return Finished { message: None, skipped: self.skipped };
        }
        if self.block.is_some() {
            let line = self.number + self.lines;
            self.skipped.push((line, "the file ends inside a fenced block".into()));
            self.close();
        }
        let mut message = self.besides.unwrap_or_else(|| NewMessage::text(Role::User, ""));
        let text = self.text.strip_prefix('\n').unwrap_or(&self.text);
        // Two line ends follow a text; an editor may have taken the last of them away.
        let text = text.strip_suffix("\n\n").or(text.strip_suffix('\n')).unwrap_or(text);
        message.content = match self.content {
            Some(content) if text.trim().is_empty() => content,
            Some(content) => format!("{text}\n{content}"),
            None => text.to_owned(),
        };
        if !self.after.trim().is_empty() {
            message.content.push('\n');
            message.content.push_str(self.after.trim_matches('\n'));
        }
        message.role = self.heading.role;
        message.timestamp = self.heading.at;
        message.tool_calls = self.calls;
        Finished { message: Some(message), skipped: self.skipped }
    }
}
