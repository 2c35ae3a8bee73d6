//! One line of a transcript, sorted by what it is to a conversation.

use std::borrow::Cow;

use chorus_proto::Usage;
use jiff::Timestamp;

use super::super::anthropic::content::{Content, parse_content};
use super::super::anthropic::message_builder::{ANTHROPIC, parse_usage};
use super::super::json_values::parse_timestamp;
use super::super::raw_object::RawObject;
use super::queue::{self, QueueOperation};
use super::{authorship, qwen};

/// Types of lines that hold no message. Those with a uuid still carry the tree.
const BOOKKEEPING_TYPES: [&str; 27] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "artifact-autoreact-ledger",
    "artifact-comment-monitor",
    "atis-latch",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
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
    "worktree-state",
];

/// Kinds of system lines that are notes of the program to itself.
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

/// Where a line stands in the tree.
#[derive(Debug, Default)]
pub(super) struct TreePosition<'a> {
    pub uuid: Option<Cow<'a, str>>,
    /// The line before it; over a compaction, the one that it follows in meaning.
    pub parent: Option<Cow<'a, str>>,
    pub side: bool,
    /// The helper whose side chain this is.
    pub agent: Option<Cow<'a, str>>,
}

/// Who speaks in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    System,
}

/// A program that writes such transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    ClaudeCode,
    /// Keeps the messages of Gemini's API in lines like those of Claude Code.
    QwenCode,
}

impl Program {
    /// The format that messages say they came from.
    pub fn format(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::QwenCode => "qwen-code",
        }
    }

    /// The API whose blocks it keeps.
    pub fn api(self) -> &'static str {
        match self {
            Self::ClaudeCode => ANTHROPIC,
            Self::QwenCode => "gemini",
        }
    }
}

/// What a line says.
#[derive(Debug)]
pub(super) struct TranscriptMessage<'a> {
    pub speaker: Speaker,
    /// The reply of the model that this line is a part of.
    pub reply: Option<Cow<'a, str>>,
    pub content: Content<'a>,
    /// Not what the program says in the user's name.
    pub by_person: bool,
    pub timestamp: Option<Timestamp>,
    pub model: Option<Cow<'a, str>>,
    pub cost: Usage,
    /// The program whose transcript it is.
    pub program: Program,
    pub session_id: Option<Cow<'a, str>>,
}

/// A name for a conversation.
#[derive(Debug)]
pub(super) enum Title<'a> {
    /// Given by the user.
    Given(Cow<'a, str>),
    /// Made from the conversation that ends at `leaf`.
    Summary { text: Cow<'a, str>, leaf: Option<Cow<'a, str>> },
    /// Made from its beginning.
    Guessed(Cow<'a, str>),
}

/// What a line is.
#[derive(Debug)]
pub(super) enum LineKind<'a> {
    Message(Box<TranscriptMessage<'a>>),
    /// A message that was typed while the program worked, as the model got it.
    QueuedMessage(Box<TranscriptMessage<'a>>),
    /// What happens to the messages that wait.
    QueueOperation(QueueOperation<'a>),
    Title(Title<'a>),
    /// Known, and no part of a conversation.
    Bookkeeping,
    /// Not understood, and why.
    Unknown(String),
}

/// Reads a line: its place in the tree, if it has one, and what it is.
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
        // With Qwen Code, results have a type of their own.
        "user" | "tool_result" => parse_message(&fields, Speaker::User),
        "assistant" => parse_message(&fields, Speaker::Assistant),
        "system" => parse_system(&fields),
        "attachment" => queue::parse_attachment(&fields),
        "queue-operation" => queue::parse_operation(&fields),
        other => parse_title(&fields, other).map_or_else(|| classify_other(other), LineKind::Title),
    };
    let place = (uuid.is_some() || speaks || matches!(kind, LineKind::QueuedMessage(_))).then(|| TreePosition {
        uuid,
        parent: fields.get_text("parentUuid").or_else(|| fields.get_text("logicalParentUuid")),
        side: fields.is_true("isSidechain"),
        agent: fields.get_text("agentId"),
    });
    (place, kind)
}

fn classify_other<'a>(name: &str) -> LineKind<'a> {
    if BOOKKEEPING_TYPES.contains(&name) {
        return LineKind::Bookkeeping;
    }
    LineKind::Unknown(format!("unknown type of line {:?}", name.chars().take(40).collect::<String>()))
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
        timestamp: fields.get("timestamp").and_then(parse_timestamp),
        model: message.get_text("model").or_else(|| fields.get_text("model")).filter(|model| !model.starts_with('<')),
        cost: Usage { cost_usd: fields.get_parsed("costUSD"), duration_ms: fields.get_parsed("durationMs"), ..tokens },
        program,
        session_id: fields.get_text("sessionId"),
    }))
}

fn parse_system<'a>(fields: &RawObject<'a>) -> LineKind<'a> {
    let noted = fields.get_text("subtype").is_some_and(|name| IGNORED_SYSTEM_SUBTYPES.contains(&name.as_ref()));
    let text = fields.get_text("content").filter(|text| !text.trim().is_empty() && !noted);
    let Some(text) = text else { return LineKind::Bookkeeping };
    LineKind::Message(Box::new(TranscriptMessage::from_content(fields, Speaker::System, Content::from_text(text))))
}

impl<'a> TranscriptMessage<'a> {
    /// What a line without a `message` says.
    pub fn from_content(fields: &RawObject<'a>, speaker: Speaker, content: Content<'a>) -> Self {
        Self {
            speaker,
            reply: None,
            by_person: authorship::is_written_by_person(fields, &content),
            content,
            timestamp: fields.get("timestamp").and_then(parse_timestamp),
            model: None,
            cost: Usage::default(),
            program: Program::ClaudeCode,
            session_id: fields.get_text("sessionId"),
        }
    }
}
