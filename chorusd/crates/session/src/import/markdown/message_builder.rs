//! Builds one message line by line.

use std::collections::VecDeque;

use chorus_proto::{NewMessage, Role, ToolCall};
use serde_json::value::RawValue;

use super::super::json_values::{import_source, json_string, minify_value};
use super::super::line_reader::MAX_LINE_BYTES;
use crate::markdown::message_heading::Heading;
use crate::markdown::{
    BlockKind, FencedBlock, MESSAGE_COMMENT, MessageRecord, Timing, parse_call_label, parse_comment,
    parse_speaker_label,
};

/// The lines of one message.
#[derive(Debug)]
pub(super) struct MessageBuilder {
    /// Number of its first line.
    pub number: u64,
    pub role: Role,
    form: MessageForm,
    message: NewMessage,
    /// Number of lines after the first one so far.
    lines: u64,
    /// Lines outside of blocks, each with its newline. `after` holds those after the first block.
    text: String,
    after: String,
    content: Option<String>,
    calls: Vec<ToolCall>,
    /// Ids and names of the calls that are yet to come, from the record of the message.
    recorded_calls: VecDeque<(String, String)>,
    /// White space before and after a text outside of a block, from the record.
    around: (String, String),
    call_label: Option<CallLabel>,
    block: Option<(String, FencedBlock, Vec<String>)>,
    closing: Option<ClosingLines>,
    skipped: Vec<(u64, String)>,
    size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageForm {
    /// The message has a heading; a comment may follow on the next line.
    Heading,
    /// The message follows its comment.
    Comment,
    /// The message begins with the speaker's label and has a record in the block of data.
    Record,
    /// The message begins with the speaker's label.
    Label,
}

/// The line that announces the block of a tool call, and the blank lines after it.
#[derive(Debug)]
struct CallLabel {
    tool: String,
    lines: Vec<String>,
}

/// The line that ends a message unless more text follows.
#[derive(Debug)]
struct ClosingLines {
    times: Option<Timing>,
    /// That line, and the blank lines and rules after it.
    lines: Vec<String>,
}

/// The result of [`MessageBuilder::finish`].
#[derive(Debug)]
pub(super) struct FinishedMessage {
    /// `None` if the message is too long.
    pub message: Option<NewMessage>,
    pub skipped: Vec<(u64, String)>,
    /// The file does not have the ids of its calls.
    pub paired_by_name: bool,
}

impl MessageBuilder {
    pub(super) fn from_heading(heading: Heading, number: u64) -> Self {
        let message = NewMessage { timestamp: heading.at, ..new_message(heading.role) };
        Self::new(message, MessageForm::Heading, number)
    }

    /// Creates a message from its comment, which contains everything but its text and tool calls.
    pub(super) fn from_comment(besides: NewMessage, number: u64) -> Self {
        Self::new(besides, MessageForm::Comment, number)
    }

    /// Creates a message from its record, which contains everything but its text and the parameters of its calls.
    pub(super) fn from_record(record: MessageRecord, number: u64) -> Self {
        let (calls, around) = (record.calls.into(), (record.before, record.after));
        Self { recorded_calls: calls, around, ..Self::new(record.message, MessageForm::Record, number) }
    }

    /// Creates a message that begins with `text`. `tool` is the name of the tool that a result is of.
    pub(super) fn from_label(
        role: Role,
        tool: Option<&str>,
        text: &str,
        at: Option<jiff::Timestamp>,
        number: u64,
    ) -> Self {
        let message = NewMessage { timestamp: at, name: tool.map(str::to_owned), ..new_message(role) };
        let mut draft = Self::new(message, MessageForm::Label, number);
        draft.push_text(text);
        draft
    }

    fn new(message: NewMessage, form: MessageForm, number: u64) -> Self {
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
            recorded_calls: VecDeque::new(),
            around: Default::default(),
            call_label: None,
            block: None,
            closing: None,
            skipped: Vec::new(),
            size: 0,
        }
    }

    /// Returns whether the next line is inside a fenced block, regardless of its text.
    pub(super) fn in_block(&self) -> bool {
        self.block.is_some()
    }

    /// Adds the line with the query's duration and tokens. It ends the message unless text follows.
    pub(super) fn add_timing_line(&mut self, line: &str, times: Option<Timing>) {
        self.keep_closing_lines();
        self.size += line.len() as u64 + 1;
        self.lines += 1;
        self.closing = Some(ClosingLines { times, lines: vec![line.to_owned()] });
    }

    /// Keeps the closing lines as text, since more text follows.
    fn keep_closing_lines(&mut self) {
        for line in self.closing.take().map(|closing| closing.lines).unwrap_or_default() {
            self.push_text(&line);
        }
    }

    /// Adds the next line, without its newline.
    pub(super) fn add_line(&mut self, line: &str) {
        let first = self.lines == 0;
        self.lines += 1;
        self.size += line.len() as u64 + 1;
        if self.size > MAX_LINE_BYTES {
            // The block still ends at its fence, so that the lines after it are not lost.
            self.block.take_if(|(fence, ..)| line.trim_end() == fence);
            return;
        }
        if let Some(closing) = &mut self.closing
            && matches!(line.trim(), "" | "---")
        {
            closing.lines.push(line.to_owned());
            return;
        }
        self.keep_closing_lines();
        if self.add_to_call_label(line) {
            return;
        }
        if let Some((fence, _, inside)) = &mut self.block {
            if line.trim_end() == fence {
                self.end_block();
            } else {
                inside.push(line.to_owned());
            }
        } else if self.form == MessageForm::Heading
            && first
            && let Some(json) = parse_comment(MESSAGE_COMMENT, line)
        {
            self.apply_comment(json);
        } else if let Some((fence, block)) = FencedBlock::parse(line).filter(|(_, block)| self.knows(block)) {
            self.block = Some((fence.to_owned(), block, Vec::new()));
        } else if matches!(self.form, MessageForm::Comment | MessageForm::Record)
            && first
            && let Some((_, text)) = parse_speaker_label(line)
        {
            self.push_text(text);
        } else {
            self.push_text(line);
        }
    }

    /// Returns whether files of this form have such a block.
    fn knows(&self, block: &FencedBlock) -> bool {
        block.kind != BlockKind::Call || matches!(self.form, MessageForm::Record | MessageForm::Label)
    }

    /// Keeps the label of a call, and blank lines after it, until the block of the call follows. Returns whether the line
    /// was kept.
    fn add_to_call_label(&mut self, line: &str) -> bool {
        if self.block.is_some() || !matches!(self.form, MessageForm::Record | MessageForm::Label) {
            return false;
        }
        if let Some(label) = self.call_label.as_mut().filter(|_| line.trim().is_empty()) {
            label.lines.push(line.to_owned());
            return true;
        }
        if FencedBlock::parse(line).is_some_and(|(_, block)| block.kind == BlockKind::Call) {
            return false;
        }
        self.keep_call_label();
        let Some(tool) = parse_call_label(line) else { return false };
        self.call_label = Some(CallLabel { tool: tool.to_owned(), lines: vec![line.to_owned()] });
        true
    }

    /// Keeps the label of a call as text, since no call follows.
    fn keep_call_label(&mut self) {
        for line in self.call_label.take().map(|label| label.lines).unwrap_or_default() {
            self.push_text(&line);
        }
    }

    fn push_text(&mut self, line: &str) {
        let text = if self.content.is_none() && self.calls.is_empty() { &mut self.text } else { &mut self.after };
        text.push_str(line);
        text.push('\n');
    }

    fn apply_comment(&mut self, json: &str) {
        match serde_json::from_str::<NewMessage>(json) {
            Ok(besides) => {
                let timestamp = self.message.timestamp;
                let source = besides.source.clone().or_else(|| self.message.source.take());
                self.message = NewMessage { role: self.role, timestamp, source, ..besides };
            }
            Err(error) => self.skipped.push((self.number + 1, format!("invalid comment: {error}"))),
        }
    }

    fn end_block(&mut self) {
        let Some((_, block, inside)) = self.block.take() else { return };
        let inside = block.decode(inside.join("\n"));
        match block.kind {
            BlockKind::Content if self.content.is_none() => self.content = Some(inside),
            BlockKind::Content => self.after.push_str(&inside),
            BlockKind::NamedCall { id, name } => self.add_call(id, name, &inside),
            BlockKind::Call => {
                let tool = self.call_label.take().map_or_else(|| "tool".to_owned(), |label| label.tool);
                let new_id = || format!("call-{}", self.number + self.lines);
                let (id, name) = self.recorded_calls.pop_front().unwrap_or_else(|| (new_id(), tool));
                self.add_call(id, name, &inside);
            }
        }
    }

    fn add_call(&mut self, id: String, name: String, inside: &str) {
        let params = RawValue::from_string(inside.trim().to_owned()).map(|raw| minify_value(&raw));
        let params = params.unwrap_or_else(|_| {
            let line = self.number + self.lines;
            self.skipped.push((line, "the parameters of a call are not JSON; kept as text".into()));
            json_string(inside)
        });
        self.calls.push(ToolCall { id, name, params });
    }

    /// Builds the message. `ruled` is true if the next section follows, with a rule before its heading.
    pub(super) fn finish(mut self, ruled: bool) -> FinishedMessage {
        let paired_by_name = self.form == MessageForm::Label;
        if self.size > MAX_LINE_BYTES {
            return FinishedMessage { message: None, skipped: self.skipped, paired_by_name };
        }
        self.keep_call_label();
        if self.block.is_some() {
            let line = self.number + self.lines;
            self.skipped.push((line, "the file ends inside a fenced block".into()));
            self.end_block();
        }
        let (text, after) = match self.form {
            MessageForm::Heading => (trim_separators(&self.text), self.after.trim_matches('\n')),
            _ if self.closing.is_some() || !ruled => (self.text.trim(), self.after.trim()),
            _ if self.after.trim().is_empty() && self.content.is_none() && self.calls.is_empty() => {
                (strip_rule(&self.text), "")
            }
            _ => (self.text.trim(), strip_rule(&self.after)),
        };
        let mut message = self.message;
        if let Some(times) = self.closing.and_then(|closing| closing.times)
            && (self.form, self.role) == (MessageForm::Label, Role::Assistant)
        {
            message.usage = Some(times.to_usage());
        }
        message.content = match self.content {
            Some(content) if text.trim().is_empty() => content,
            Some(content) => format!("{text}\n{content}"),
            None => format!("{}{text}{}", self.around.0, self.around.1),
        };
        if !after.trim().is_empty() {
            message.content.push('\n');
            message.content.push_str(after);
        }
        message.tool_calls = self.calls;
        FinishedMessage { message: Some(message), skipped: self.skipped, paired_by_name }
    }
}

/// Creates a message for a file that does not say where it came from.
fn new_message(role: Role) -> NewMessage {
    NewMessage { source: Some(import_source("markdown")), ..NewMessage::text(role, "") }
}

/// Removes the separators between two headings. Other blank lines belong to the text.
fn trim_separators(text: &str) -> &str {
    let text = text.strip_prefix('\n').unwrap_or(text);
    // Two newlines follow a text, of which an editor may have removed the last one.
    text.strip_suffix("\n\n").or(text.strip_suffix('\n')).unwrap_or(text)
}

/// Removes the rule that separates the text from the next section.
fn strip_rule(text: &str) -> &str {
    let text = text.trim();
    match text.strip_suffix("---") {
        Some(before) if before.is_empty() || before.ends_with('\n') => before.trim(),
        _ => text,
    }
}
