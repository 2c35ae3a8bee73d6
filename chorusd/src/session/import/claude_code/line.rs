//! One line of a transcript, sorted by what it is to a conversation.

use std::borrow::Cow;

use chorus_proto::Usage;
use jiff::Timestamp;

use super::super::anthropic::content::{Content, content};
use super::super::anthropic::draft::{ANTHROPIC, usage};
use super::super::fields::Fields;
use super::super::values::timestamp;
use super::queue::{self, Operation};
use super::{person, qwen};

/// Types of lines that hold no message. Those with a uuid still carry the tree.
const BOOKKEEPING: [&str; 27] = [
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
const NOTES: [&str; 8] = [
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
pub(super) struct Place<'a> {
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
pub(super) struct Talk<'a> {
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
pub(super) enum Kind<'a> {
    Talk(Box<Talk<'a>>),
    /// A message that was typed while the program worked, as the model got it.
    Queued(Box<Talk<'a>>),
    /// What happens to the messages that wait.
    Queue(Operation<'a>),
    Title(Title<'a>),
    /// Known, and no part of a conversation.
    Note,
    /// Not understood, and why.
    Unknown(String),
}

/// Reads a line: its place in the tree, if it has one, and what it is.
pub(super) fn read(bytes: &[u8]) -> (Option<Place<'_>>, Kind<'_>) {
    let fields = match Fields::read(bytes) {
        Ok(fields) => fields,
        Err(reason) => return (None, Kind::Unknown(reason)),
    };
    let Some(name) = fields.text("type") else {
        return (None, Kind::Unknown("not a line of a transcript: it has no type".into()));
    };
    let uuid = fields.text("uuid");
    let speaks = matches!(name.as_ref(), "user" | "assistant" | "system");
    let kind = match name.as_ref() {
        // With Qwen Code, results have a type of their own.
        "user" | "tool_result" => talk(&fields, Speaker::User),
        "assistant" => talk(&fields, Speaker::Assistant),
        "system" => system(&fields),
        "attachment" => queue::attachment(&fields),
        "queue-operation" => queue::operation(&fields),
        other => title(&fields, other).map_or_else(|| other_kind(other), Kind::Title),
    };
    let place = (uuid.is_some() || speaks || matches!(kind, Kind::Queued(_))).then(|| Place {
        uuid,
        parent: fields.text("parentUuid").or_else(|| fields.text("logicalParentUuid")),
        side: fields.flag("isSidechain"),
        agent: fields.text("agentId"),
    });
    (place, kind)
}

fn other_kind<'a>(name: &str) -> Kind<'a> {
    if BOOKKEEPING.contains(&name) {
        return Kind::Note;
    }
    Kind::Unknown(format!("unknown type of line {:?}", name.chars().take(40).collect::<String>()))
}

fn title<'a>(fields: &Fields<'a>, name: &str) -> Option<Title<'a>> {
    match name {
        "summary" => Some(Title::Summary { text: fields.text("summary")?, leaf: fields.text("leafUuid") }),
        "custom-title" => Some(Title::Given(fields.text("customTitle")?)),
        "ai-title" => Some(Title::Guessed(fields.text("aiTitle")?)),
        _ => None,
    }
}

fn talk<'a>(fields: &Fields<'a>, speaker: Speaker) -> Kind<'a> {
    let Some(raw) = fields.get("message") else { return Kind::Unknown("it has no message".into()) };
    let Some(message) = Fields::of(raw) else { return Kind::Unknown("its message is not an object".into()) };
    let (content, tokens, program) = match (message.get("content"), message.get("parts")) {
        (Some(raw), _) => (content(raw), usage(message.get("usage")), Program::ClaudeCode),
        (None, Some(parts)) => (qwen::content(parts), qwen::usage(fields), Program::QwenCode),
        (None, None) => return Kind::Unknown("its message has no content".into()),
    };
    let content = match content {
        Ok(content) => content,
        Err(reason) => return Kind::Unknown(reason),
    };
    Kind::Talk(Box::new(Talk {
        speaker,
        reply: message.text("id").filter(|_| speaker == Speaker::Assistant),
        by_person: person::wrote(fields, &content),
        content,
        timestamp: fields.get("timestamp").and_then(timestamp),
        model: message.text("model").or_else(|| fields.text("model")).filter(|model| !model.starts_with('<')),
        cost: Usage { cost_usd: fields.parse("costUSD"), duration_ms: fields.parse("durationMs"), ..tokens },
        program,
        session_id: fields.text("sessionId"),
    }))
}

fn system<'a>(fields: &Fields<'a>) -> Kind<'a> {
    let noted = fields.text("subtype").is_some_and(|name| NOTES.contains(&name.as_ref()));
    let text = fields.text("content").filter(|text| !text.trim().is_empty() && !noted);
    let Some(text) = text else { return Kind::Note };
    Kind::Talk(Box::new(Talk::words(fields, Speaker::System, Content::of(text))))
}

impl<'a> Talk<'a> {
    /// What a line without a `message` says.
    pub fn words(fields: &Fields<'a>, speaker: Speaker, content: Content<'a>) -> Self {
        Self {
            speaker,
            reply: None,
            by_person: person::wrote(fields, &content),
            content,
            timestamp: fields.get("timestamp").and_then(timestamp),
            model: None,
            cost: Usage::default(),
            program: Program::ClaudeCode,
            session_id: fields.text("sessionId"),
        }
    }
}
