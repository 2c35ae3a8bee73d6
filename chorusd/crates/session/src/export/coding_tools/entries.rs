//! Turns messages into the parts that the files of all programs have, in an order that every model takes: each result
//! directly follows the calls of its reply, and no id of a call occurs twice.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use chorus_proto::{Message, Role, SourceKind, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::id_check::{hash_of_call, hash_of_message};
use super::texts::{self, Image};
use crate::stored_message::StoredMessage;

/// Programs from which the only imported system messages are summaries of compactions.
const SUMMARY_PROGRAMS: [&str; 6] = ["copilot", "gemini", "hermes", "opencode", "openclaw", "pi"];

/// Start of the summary that Claude Code writes when it compacts a conversation.
pub(super) const CLAUDE_SUMMARY_START: &str =
    "This session is being continued from a previous conversation that ran out of context.";

/// Starts of messages in which Codex describes its own environment and instructions to the model.
const CODEX_INSTRUCTIONS: [&str; 3] = ["# AGENTS.md instructions", "<environment_context>", "<user_instructions>"];

/// Text of the user's message before a conversation that starts with a reply.
const NO_QUESTION: &str = "[The conversation starts with the reply.]";

/// A part of a message.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    User {
        text: String,
        images: Vec<Image>,
        /// A program wrote it in the user's name.
        by_program: bool,
    },
    Assistant {
        text: String,
    },
    /// Its result follows.
    Call {
        id: String,
        name: String,
        arguments: Box<RawValue>,
    },
    Result {
        call: String,
        text: String,
        images: Vec<Image>,
        is_error: bool,
    },
    /// A summary that takes the place of everything before it.
    Summary {
        text: String,
    },
}

/// State between two messages.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct ToolProgress {
    /// Hashes of ids that occur more than once.
    repeated_ids: Arc<HashSet<u64>>,
    /// Calls of the last reply whose results follow: the id in the session, and the one that was written.
    open_calls: Vec<(String, String)>,
    /// Texts that come after the results of these calls.
    late_texts: Vec<String>,
    has_user_message: bool,
    /// There is something before the next message.
    pub(super) has_begun: bool,
    /// Id of the last line.
    pub(super) last_line: Option<Uuid>,
    /// Id of the last message of the user.
    pub(super) last_question: Option<String>,
    /// Number of the last id.
    pub(super) last_number: u64,
    pub(super) has_messages: bool,
}

/// The requirements of a program on the entries of its files.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryRules {
    /// Calls whose parameters are not a JSON object become text.
    pub needs_object: bool,
    /// A reply holds its calls together with their results, and these are texts.
    pub is_grouped: bool,
    /// The first message must be one of the user.
    pub needs_question: bool,
}

#[derive(Deserialize)]
struct ResultProbe {
    #[serde(default)]
    tool_call_id: Option<String>,
}

type Following<'a> = Box<dyn Iterator<Item = io::Result<StoredMessage>> + 'a>;

impl ToolProgress {
    pub(super) fn new(repeated_ids: HashSet<u64>) -> Self {
        Self { repeated_ids: Arc::new(repeated_ids), ..Self::default() }
    }

    /// Returns whether no other message has this id.
    pub(super) fn is_unique(&self, message_id: &str) -> bool {
        !self.repeated_ids.contains(&hash_of_message(message_id))
    }

    /// Converts the message with this number, counted from 1. `following` returns the messages after it.
    pub(super) fn convert<'a>(
        &mut self,
        message: Message,
        number: u64,
        rules: EntryRules,
        following: &mut dyn FnMut() -> Following<'a>,
    ) -> io::Result<Vec<Entry>> {
        let mut entries = match message.role {
            Role::System => self.convert_system(message),
            Role::User => self.convert_user(message),
            Role::Assistant => self.convert_reply(message, number, rules, following)?,
            Role::ToolResult => {
                let mut entries = self.convert_result(message, !rules.is_grouped);
                entries.retain(|entry| !rules.is_grouped || !matches!(entry, Entry::Result { .. }));
                entries
            }
        };
        if let Some(Entry::Assistant { .. } | Entry::Call { .. }) = entries.first()
            && rules.needs_question
            && !self.has_begun
        {
            let text = NO_QUESTION.to_owned();
            entries.insert(0, Entry::User { text, images: Vec::new(), by_program: true });
        }
        self.has_begun |= !entries.is_empty();
        Ok(entries)
    }

    /// Leaves it out, unless it is the summary of a compaction. The instructions of Codex begin with a tag, or are before
    /// the first message of the user.
    fn convert_system(&mut self, message: Message) -> Vec<Entry> {
        let is_of_codex =
            is_from(&message, "codex") && self.has_user_message && !message.content.trim_start().starts_with('<');
        let is_summary = (is_of_codex || SUMMARY_PROGRAMS.iter().any(|program| is_from(&message, program)))
            && !message.content.trim().is_empty();
        if is_summary { vec![Entry::Summary { text: texts::without_nul(message.content) }] } else { Vec::new() }
    }

    fn convert_user(&mut self, message: Message) -> Vec<Entry> {
        self.end_reply();
        let by_program = message.source.as_ref().is_some_and(|source| source.kind == SourceKind::Agent)
            && message.source.as_ref().is_some_and(|source| source.format.is_some());
        let start = message.content.trim_start();
        if by_program && is_from(&message, "codex") && CODEX_INSTRUCTIONS.iter().any(|mark| start.starts_with(mark)) {
            return Vec::new();
        }
        if by_program && start.starts_with(CLAUDE_SUMMARY_START) {
            return vec![Entry::Summary { text: texts::without_nul(message.content) }];
        }
        self.has_user_message = true;
        let mut text = texts::message_text(&message);
        let (images, notes) = texts::split_attachments(message.attachments, true);
        text.push_str(&notes);
        if text.trim().is_empty() && images.is_empty() {
            return Vec::new();
        }
        vec![Entry::User { text, images, by_program }]
    }

    fn convert_reply<'a>(
        &mut self,
        message: Message,
        number: u64,
        rules: EntryRules,
        following: &mut dyn FnMut() -> Following<'a>,
    ) -> io::Result<Vec<Entry>> {
        self.end_reply();
        let mut text = texts::message_text(&message);
        let is_silent = text.is_empty();
        text.push_str(&texts::split_attachments(message.attachments, false).1);
        let answered = find_answered(&message.tool_calls, following)?;
        let (mut calls, mut index) = (Vec::new(), 0);
        for (call, is_answered) in message.tool_calls.into_iter().zip(answered) {
            index += 1;
            let arguments = texts::params_without_nul(call.params.clone());
            let arguments = if rules.needs_object { to_object(arguments) } else { Some(arguments) };
            let Some(arguments) = arguments.filter(|_| is_answered) else {
                text.push_str(&format!("\n\n{}", texts::call_text(&call)));
                continue;
            };
            let id = self.written_id(&call.id, number, index);
            self.open_calls.push((call.id, id.clone()));
            calls.push(Entry::Call { id, name: texts::tool_name(&call.name).into_owned(), arguments });
        }
        let text = if is_silent { text.trim_start().to_owned() } else { text };
        let said = (!text.trim().is_empty()).then_some(Entry::Assistant { text });
        let mut entries: Vec<Entry> = said.into_iter().chain(calls).collect();
        if rules.is_grouped {
            self.add_results(&mut entries, following)?;
        }
        Ok(entries)
    }

    /// Adds the results of the open calls.
    fn add_results<'a>(
        &self,
        entries: &mut Vec<Entry>,
        following: &mut dyn FnMut() -> Following<'a>,
    ) -> io::Result<()> {
        let mut ahead = Self { open_calls: self.open_calls.clone(), ..Self::default() };
        let mut messages = following();
        while !ahead.open_calls.is_empty()
            && let Some(message) = messages.next().transpose()?
        {
            if message.role() == Role::ToolResult {
                let results = ahead.convert_result(message.to_message()?, false);
                entries.extend(results.into_iter().filter(|entry| matches!(entry, Entry::Result { .. })));
            }
        }
        Ok(())
    }

    fn convert_result(&mut self, message: Message, takes_images: bool) -> Vec<Entry> {
        let id = message.tool_call_id.as_deref();
        let open = self.open_calls.iter().position(|(call, _)| Some(call.as_str()) == id);
        let (images, notes) = texts::split_attachments(message.attachments, takes_images && open.is_some());
        let text = texts::shorten_result(texts::without_nul(message.content)) + &notes;
        let mut entries = Vec::new();
        match open {
            Some(at) => {
                let (_, call) = self.open_calls.remove(at);
                entries.push(Entry::Result { call, text, images, is_error: message.is_error });
            }
            None => self.late_texts.push(texts::result_text(message.name.as_deref(), &text)),
        }
        if self.open_calls.is_empty() && !self.late_texts.is_empty() {
            let text = std::mem::take(&mut self.late_texts).join("\n\n");
            entries.push(Entry::User { text, images: Vec::new(), by_program: true });
        }
        entries
    }

    fn end_reply(&mut self) {
        self.open_calls.clear();
        self.late_texts.clear();
    }

    /// Returns the id of a call as it is written: unchanged if every API takes it and no other call has it.
    fn written_id(&self, id: &str, number: u64, index: usize) -> String {
        let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !is_plain || !(1..=64).contains(&id.len()) {
            return format!("call-{number}-{index}");
        }
        match self.repeated_ids.contains(&hash_of_call(id)) {
            true => format!("{}-{number}-{index}", &id[..id.len().min(40)]),
            false => id.to_owned(),
        }
    }
}

fn is_from(message: &Message, program: &str) -> bool {
    message.source.as_ref().is_some_and(|source| source.format.as_deref() == Some(program))
}

/// Returns the parameters of a call as an object; those that were never given are empty.
fn to_object(params: Box<RawValue>) -> Option<Box<RawValue>> {
    match params.get().trim_start().as_bytes().first() {
        Some(b'{') => Some(params),
        _ if params.get() == "\"\"" || params.get() == "null" => RawValue::from_string("{}".to_owned()).ok(),
        _ => None,
    }
}

/// Returns for each call whether its result is among those that directly follow.
fn find_answered<'a>(calls: &[ToolCall], following: &mut dyn FnMut() -> Following<'a>) -> io::Result<Vec<bool>> {
    let mut answered = vec![false; calls.len()];
    let mut missing = calls.len();
    if missing == 0 {
        return Ok(answered);
    }
    for message in following() {
        let message = message?;
        match message.role() {
            Role::System => continue,
            Role::ToolResult => {}
            Role::User | Role::Assistant => break,
        }
        let ResultProbe { tool_call_id } = serde_json::from_slice(message.json())?;
        let of = calls.iter().zip(&answered).position(|(call, is)| !is && Some(&call.id) == tool_call_id.as_ref());
        if let Some(at) = of {
            answered[at] = true;
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    Ok(answered)
}
