//! Parses one line of a transcript and classifies it.

use std::borrow::Cow;

use chorus_proto::Usage;
use jiff::Timestamp;

use super::super::anthropic_blocks::content::{Content, parse_content};
use super::super::anthropic_blocks::message_builder::{ANTHROPIC, parse_usage};
use super::super::json_values::parse_timestamp;
use super::super::raw_object::RawObject;
use super::queue_operation::{self, QueueOperation};
use super::{authorship, qwen};

/// Types of lines without a message. Those with a uuid are still part of the tree.
const BOOKKEEPING_TYPES: [&str; 32] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "artifact-autoreact-ledger",
    "artifact-comment-monitor",
    "atis-latch",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "cost-state",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "frame-link",
    "history-suppression",
    "last-prompt",
    "marble-origami-commit",
    "marble-origami-snapshot",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "speculation-accept",
    "summary",
    "tag",
    "task-summary",
    "tools-used",
    "worktree-state",
];

/// Subtypes of system lines that are notes of the program to itself.
const IGNORED_SYSTEM_SUBTYPES: [&str; 8] = [
    "agents_killed",
    "api_metrics",
    "bridge_status",
    "file_snapshot",
    "memory_saved",
    "scheduled_task_fire",
    "stop_hook_summary",
    "turn_duration",
];

/// The position of a line in the tree.
#[derive(Debug, Default)]
pub(super) struct TreePosition<'a> {
    pub uuid: Option<Cow<'a, str>>,
    /// uuid of the previous line; across a compaction, of the line that it logically follows.
    pub parent: Option<Cow<'a, str>>,
    pub side: bool,
    /// The subagent of the side chain.
    pub agent: Option<Cow<'a, str>>,
}

/// The speaker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    System,
}

/// A program that writes transcripts of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    ClaudeCode,
    /// Stores messages of Gemini's API in lines like those of Claude Code.
    QwenCode,
}

impl Program {
    /// Returns the format that is recorded as the source of messages.
    pub(super) fn format(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::QwenCode => "qwen-code",
        }
    }

    /// Returns the API whose blocks the program stores.
    pub(super) fn api(self) -> &'static str {
        match self {
            Self::ClaudeCode => ANTHROPIC,
            Self::QwenCode => "gemini",
        }
    }
}

/// The message of a line.
#[derive(Debug)]
pub(super) struct TranscriptMessage<'a> {
    pub speaker: Speaker,
    /// Id of the reply that the line is part of.
    pub reply: Option<Cow<'a, str>>,
    pub content: Content<'a>,
    /// False for text that the program writes in the user's name.
    pub by_person: bool,
    pub timestamp: Option<Timestamp>,
    pub model: Option<Cow<'a, str>>,
    pub cost: Usage,
    /// Tokens of the input that were written to the cache.
    pub cache_write: u64,
    /// The line was written before the reply ended, so that the output tokens may be more.
    pub is_partial: bool,
    /// The program that wrote the transcript.
    pub program: Program,
    pub session_id: Option<Cow<'a, str>>,
    /// The current directory.
    pub directory: Option<Cow<'a, str>>,
    pub branch: Option<Cow<'a, str>>,
}

/// A title of a conversation.
#[derive(Debug)]
pub(super) enum Title<'a> {
    /// Given by the user.
    Given(Cow<'a, str>),
    /// Generated from the conversation that ends at `leaf`.
    Summary { text: Cow<'a, str>, leaf: Option<Cow<'a, str>> },
    /// Generated from the start of the conversation.
    Guessed(Cow<'a, str>),
}

/// The kind of a line.
#[derive(Debug)]
pub(super) enum LineKind<'a> {
    Message(Box<TranscriptMessage<'a>>),
    /// A message that was typed while the program worked, in the form in which the model received it.
    QueuedMessage(Box<TranscriptMessage<'a>>),
    /// A change to the queue of messages that were typed.
    QueueOperation(QueueOperation<'a>),
    Title(Title<'a>),
    /// A known line that is not part of a conversation.
    Bookkeeping,
    /// A line of an unknown type without a message, probably bookkeeping of a newer version.
    UnknownType(String),
    /// A line that cannot be parsed, and the reason.
    Unknown(String),
}

/// Parses a line. Returns its position in the tree, if it has one, and its kind.
pub(super) fn parse(bytes: &[u8]) -> (Option<TreePosition<'_>>, LineKind<'_>) {
    let fields = match RawObject::from_bytes(bytes) {
        Ok(fields) => fields,
        Err(reason) => return (None, LineKind::Unknown(reason)),
    };
    let Some(name) = fields.get_text("type") else {
        return (None, LineKind::Unknown("not a line of a transcript: it has no type".into()));
    };
    let uuid = fields.get_text("uuid");
    let speaks = matches!(name.as_ref(), "user" | "assistant" | "system");
    let kind = match name.as_ref() {
        // Qwen Code has a separate type for tool results.
        "user" | "tool_result" => parse_message(&fields, Speaker::User),
        "assistant" => parse_message(&fields, Speaker::Assistant),
        "system" => parse_system(&fields),
        "attachment" => queue_operation::parse_attachment(&fields),
        "queue-operation" => queue_operation::parse_operation(&fields),
        other => parse_title(&fields, other).map_or_else(|| classify_other(&fields, other), LineKind::Title),
    };
    let place = (uuid.is_some() || speaks || matches!(kind, LineKind::QueuedMessage(_))).then(|| TreePosition {
        uuid,
        parent: fields.get_text("parentUuid").or_else(|| fields.get_text("logicalParentUuid")),
        side: fields.is_true("isSidechain"),
        agent: fields.get_text("agentId"),
    });
    (place, kind)
}

fn classify_other<'a>(fields: &RawObject<'a>, name: &str) -> LineKind<'a> {
    if BOOKKEEPING_TYPES.contains(&name) {
        return LineKind::Bookkeeping;
    }
    let reason = format!("unknown type of line {:?}", name.chars().take(40).collect::<String>());
    if fields.has("message") { LineKind::Unknown(reason) } else { LineKind::UnknownType(reason) }
}

fn parse_title<'a>(fields: &RawObject<'a>, name: &str) -> Option<Title<'a>> {
    match name {
        "summary" => Some(Title::Summary { text: fields.get_text("summary")?, leaf: fields.get_text("leafUuid") }),
        "custom-title" => Some(Title::Given(fields.get_text("customTitle")?)),
        "ai-title" => Some(Title::Guessed(fields.get_text("aiTitle")?)),
        _ => None,
    }
}

fn parse_message<'a>(fields: &RawObject<'a>, speaker: Speaker) -> LineKind<'a> {
    let Some(raw) = fields.get("message") else { return LineKind::Unknown("it has no message".into()) };
    let Some(message) = RawObject::from_value(raw) else {
        return LineKind::Unknown("its message is not an object".into());
    };
    let (content, tokens, program) = match (message.get("content"), message.get("parts")) {
        (Some(raw), _) => (parse_content(raw), parse_usage(message.get("usage")), Program::ClaudeCode),
        (None, Some(parts)) => (qwen::parse_content(parts), qwen::parse_usage(fields), Program::QwenCode),
        (None, None) => return LineKind::Unknown("its message has no content".into()),
    };
    let content = match content {
        Ok(content) => content,
        Err(reason) => return LineKind::Unknown(reason),
    };
    LineKind::Message(Box::new(TranscriptMessage {
        speaker,
        reply: message.get_text("id").filter(|_| speaker == Speaker::Assistant),
        by_person: authorship::is_written_by_person(fields, &content),
        content,
        cache_write: count_cache_writes(&message),
        is_partial: message.contains_key("stop_reason") && !message.has("stop_reason"),
        timestamp: fields.get("timestamp").and_then(parse_timestamp),
        model: message.get_text("model").or_else(|| fields.get_text("model")).filter(|model| !model.starts_with('<')),
        cost: Usage { cost_usd: fields.get_parsed("costUSD"), duration_ms: fields.get_parsed("durationMs"), ..tokens },
        program,
        session_id: fields.get_text("sessionId"),
        directory: non_empty_text(fields, "cwd"),
        branch: non_empty_text(fields, "gitBranch"),
    }))
}

fn count_cache_writes(message: &RawObject<'_>) -> u64 {
    let usage = message.get("usage").and_then(RawObject::from_value);
    usage.and_then(|usage| usage.get_u64("cache_creation_input_tokens")).unwrap_or(0)
}

fn parse_system<'a>(fields: &RawObject<'a>) -> LineKind<'a> {
    let noted = fields.get_text("subtype").is_some_and(|name| IGNORED_SYSTEM_SUBTYPES.contains(&name.as_ref()));
    let text = fields.get_text("content").filter(|text| !text.trim().is_empty() && !noted);
    let Some(text) = text else { return LineKind::Bookkeeping };
    LineKind::Message(Box::new(TranscriptMessage::from_content(fields, Speaker::System, Content::from_text(text))))
}

impl<'a> TranscriptMessage<'a> {
    /// Creates the message of a line without a `message` field.
    pub(super) fn from_content(fields: &RawObject<'a>, speaker: Speaker, content: Content<'a>) -> Self {
        Self {
            speaker,
            reply: None,
            by_person: authorship::is_written_by_person(fields, &content),
            content,
            timestamp: fields.get("timestamp").and_then(parse_timestamp),
            model: None,
            cost: Usage::default(),
            cache_write: 0,
            is_partial: false,
            program: Program::ClaudeCode,
            session_id: fields.get_text("sessionId"),
            directory: non_empty_text(fields, "cwd"),
            branch: non_empty_text(fields, "gitBranch"),
        }
    }
}

fn non_empty_text<'a>(fields: &RawObject<'a>, name: &str) -> Option<Cow<'a, str>> {
    fields.get_text(name).filter(|text| !text.is_empty())
}
