//! One message, line by line.

use chorus_proto::{NewMessage, Role, ToolCall};
use serde_json::value::RawValue;

use super::super::lines::LONGEST;
use super::super::values::{one_line, source, string};
use crate::session::markdown::headed::Heading;
use crate::session::markdown::{Block, Holds, MESSAGE, Times, commented, labelled};

/// The lines of one message.
#[derive(Debug)]
pub(super) struct Draft {
    /// Line of its beginning.
    pub number: u64,
    pub role: Role,
    form: Form,
    message: NewMessage,
    /// Lines after the beginning so far.
    lines: u64,
    /// Lines outside of blocks, each with its end; those after the first block apart.
    text: String,
    after: String,
    content: Option<String>,
    calls: Vec<ToolCall>,
    block: Option<(String, Block, Vec<String>)>,
    closing: Option<Closing>,
    skipped: Vec<(u64, String)>,
    size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// It has a heading of its own; the comment, where there is one, is on the next line.
    Headed,
    /// A comment came before it.
    Commented,
    /// It begins with the name of who speaks.
    Labelled,
}

/// The line that ends a message, unless more of it follows.
#[derive(Debug)]
struct Closing {
    times: Option<Times>,
    /// That line, and blank ones and rules behind it.
    lines: Vec<String>,
}

/// What became of the lines.
#[derive(Debug)]
pub(super) struct Finished {
    /// `None`: it is too long.
    pub message: Option<NewMessage>,
    pub skipped: Vec<(u64, String)>,
}

impl Draft {
    pub fn headed(heading: Heading, number: u64) -> Self {
        let message = NewMessage { timestamp: heading.at, ..imported(heading.role) };
        Self::new(message, Form::Headed, number)
    }

    /// A message whose comment says all but its text and calls.
    pub fn commented(besides: NewMessage, number: u64) -> Self {
        Self::new(besides, Form::Commented, number)
    }

    /// A message that begins with `text`.
    pub fn labelled(role: Role, text: &str, at: Option<jiff::Timestamp>, number: u64) -> Self {
        let mut draft = Self::new(NewMessage { timestamp: at, ..imported(role) }, Form::Labelled, number);
        draft.push(text);
        draft
    }

    fn new(message: NewMessage, form: Form, number: u64) -> Self {
        Self {
            number,
            role: message.role,
            form,
            message,
            lines: 0,
            text: String::new(),
            after: String::new(),
            content: None,
            calls: Vec::new(),
            block: None,
            closing: None,
            skipped: Vec::new(),
            size: 0,
        }
    }

    /// Whether the next line is inside a fenced block, whatever it looks like.
    pub fn in_block(&self) -> bool {
        self.block.is_some()
    }

    /// Takes the line of what the query took, which ends the message unless text follows.
    pub fn close(&mut self, line: &str, times: Option<Times>) {
        self.reopen();
        self.size += line.len() as u64 + 1;
        self.lines += 1;
        self.closing = Some(Closing { times, lines: vec![line.to_owned()] });
    }

    /// Text follows: what looked like the end was said.
    fn reopen(&mut self) {
        for line in self.closing.take().map(|closing| closing.lines).unwrap_or_default() {
            self.push(&line);
        }
    }

    /// Takes the next line, without its end.
    pub fn line(&mut self, line: &str) {
        let first = self.lines == 0;
        self.lines += 1;
        self.size += line.len() as u64 + 1;
        if self.size > LONGEST {
            // A block ends all the same: what follows is not lost with it.
            self.block.take_if(|(fence, ..)| line.trim_end() == fence);
            return;
        }
        if let Some(closing) = &mut self.closing
            && matches!(line.trim(), "" | "---")
        {
            closing.lines.push(line.to_owned());
            return;
        }
        self.reopen();
        if let Some((fence, _, inside)) = &mut self.block {
            if line.trim_end() == fence {
                self.end_block();
            } else {
                inside.push(line.to_owned());
            }
        } else if self.form == Form::Headed
            && first
            && let Some(json) = commented(MESSAGE, line)
        {
            self.comment(json);
        } else if let Some((fence, block)) = Block::parse(line) {
            self.block = Some((fence.to_owned(), block, Vec::new()));
        } else if self.form == Form::Commented
            && first
            && let Some((_, text)) = labelled(line)
        {
            self.push(text);
        } else {
            self.push(line);
        }
    }

    fn push(&mut self, line: &str) {
        let text = if self.content.is_none() && self.calls.is_empty() { &mut self.text } else { &mut self.after };
        text.push_str(line);
        text.push('\n');
    }

    fn comment(&mut self, json: &str) {
        match serde_json::from_str::<NewMessage>(json) {
            Ok(besides) => {
                let timestamp = self.message.timestamp;
                let source = besides.source.clone().or_else(|| self.message.source.take());
                self.message = NewMessage { role: self.role, timestamp, source, ..besides };
            }
            Err(error) => self.skipped.push((self.number + 1, format!("the comment cannot be read: {error}"))),
        }
    }

    fn end_block(&mut self) {
        let Some((_, block, inside)) = self.block.take() else { return };
        let inside = block.read(inside.join("\n"));
        match block.holds {
            Holds::Content if self.content.is_none() => self.content = Some(inside),
            Holds::Content => self.after.push_str(&inside),
            Holds::Call { id, name } => {
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

    /// The message; `ruled`: the line before a heading parted it from the next section.
    pub fn finish(mut self, ruled: bool) -> Finished {
        if self.size > LONGEST {
            return Finished { message: None, skipped: self.skipped };
        }
        if self.block.is_some() {
            let line = self.number + self.lines;
            self.skipped.push((line, "the file ends inside a fenced block".into()));
            self.end_block();
        }
        let (text, after) = match self.form {
            Form::Headed => (spaced(&self.text), self.after.trim_matches('\n')),
            _ if self.closing.is_some() || !ruled => (self.text.trim(), self.after.trim()),
            _ if self.after.trim().is_empty() && self.content.is_none() && self.calls.is_empty() => {
                (unruled(&self.text), "")
            }
            _ => (self.text.trim(), unruled(&self.after)),
        };
        let mut message = self.message;
        if let Some(times) = self.closing.and_then(|closing| closing.times)
            && (self.form, self.role) == (Form::Labelled, Role::Assistant)
        {
            message.usage = Some(times.usage());
        }
        message.content = match self.content {
            Some(content) if text.trim().is_empty() => content,
            Some(content) => format!("{text}\n{content}"),
            None => text.to_owned(),
        };
        if !after.trim().is_empty() {
            message.content.push('\n');
            message.content.push_str(after);
        }
        message.tool_calls = self.calls;
        Finished { message: Some(message), skipped: self.skipped }
    }
}

/// A message of a file that does not say where it came from.
fn imported(role: Role) -> NewMessage {
    NewMessage { source: Some(source("markdown")), ..NewMessage::text(role, "") }
}

/// A text between a heading and the next: it may begin and end with blank lines of its own.
fn spaced(text: &str) -> &str {
    let text = text.strip_prefix('\n').unwrap_or(text);
    // Two line ends follow a text; an editor may have taken the last of them away.
    text.strip_suffix("\n\n").or(text.strip_suffix('\n')).unwrap_or(text)
}

/// A text without the rule that parts it from the next section.
fn unruled(text: &str) -> &str {
    let text = text.trim();
    match text.strip_suffix("---") {
        Some(before) if before.is_empty() || before.ends_with('\n') => before.trim(),
        _ => text,
    }
}
