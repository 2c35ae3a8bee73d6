//! Checks of exported sessions: Markdown can be imported again, HTML contains only text.

use std::io::{self, Cursor};

use bytes::Bytes;
use chorus_proto::Message;
use chorus_proto::methods::export::ExportFormat;
use chorus_proto::methods::import::ImportFormat;
use chorus_session::import::{ImportSink, ImportedMetadata, import};
use chorus_session::{SessionFile, export, file};
use jiff::Timestamp;
use serde_json::{Value, json};

const ROLES: [&str; 4] = ["user", "assistant", "tool_result", "system"];

/// The only elements that a page may contain.
const ALLOWED_ELEMENTS: &[&str] = &[
    "html",
    "head",
    "body",
    "header",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "p",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "details",
    "summary",
    "main",
    "nav",
    "article",
    "span",
    "time",
    "div",
    "b",
    "pre",
    "code",
    "img",
    "a",
    "em",
    "strong",
    "del",
    "blockquote",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "hr",
    "br",
    "input",
];

/// Builds a session from these texts, in all roles and fields.
#[must_use]
pub fn build_session(texts: &[&str]) -> SessionFile {
    let message = |(n, text): (usize, &&str)| {
        let role = ROLES[n % ROLES.len()];
        let mut message = json!({"id": format!("m{n}"), "role": role, "content": text,
            "timestamp": format!("2026-01-02T03:{:02}:{:02}.{:06}Z", n / 60 % 60, n % 60, n)});
        match role {
            "assistant" => {
                let params: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({"text": text}));
                message["tool_calls"] = json!([{"id": text, "name": text, "params": params}]);
            }
            "tool_result" => message["tool_call_id"] = (*text).into(),
            _ => message["author"] = json!({"id": "1", "name": text}),
        }
        message
    };
    let messages: Vec<Value> = texts.iter().enumerate().map(message).collect();
    let text = texts.first().copied().unwrap_or_default();
    let whole = json!({"schema": 2, "id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "session_id": "2026-01-02_a-talk",
        "agent_name": text, "description": text, "summary": text, "summary_source": "given", "model": text, "tags": [text],
        "saved_at": "2026-01-02T03:04:05Z", "message_count": messages.len(), "messages": messages,
        "working_set": {"background": text, "decisions": [{"id": "1", "text": text, "source": "rule"}]}});
    file::parse(&Bytes::from(whole.to_string())).expect("a session")
}

/// Exports the session in a form.
#[must_use]
pub fn export_text(session: &SessionFile, form: ExportFormat) -> String {
    let mut out = Vec::new();
    export::write(&mut out, session, None, form).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// Checks that the Markdown export imports with every byte of its messages, and that the HTML page contains no markup
/// from the texts.
pub fn check_exports(session: &SessionFile) {
    let markdown = export_text(session, ExportFormat::Md);
    let marks = |mark: &str| markdown.matches(mark).count();
    assert!(marks("<!-- SESSION_SUMMARY_START -->") <= 1 && marks("<!-- SESSION_SUMMARY_END -->") <= 1, "{markdown}");
    let mut back = CollectingSink::default();
    let mut new_id = || "none".to_owned();
    let source = &mut Cursor::new(&markdown);
    import(source, ImportFormat::Auto, Timestamp::UNIX_EPOCH, &mut new_id, &mut back).expect("it is read back");
    let before: Vec<String> =
        session.messages.iter().map(|stored| to_json(&stored.to_message().expect("one"))).collect();
    assert_eq!(back.messages, before, "{markdown}");
    let about = back.about.expect("an end");
    assert_eq!(
        (about.description, about.summary),
        (session.header.description.clone(), session.header.summary.clone())
    );
    assert_eq!(about.working_set.as_ref(), Some(&session.header.working_set));
    check_only_text(&export_text(session, ExportFormat::Html));
}

/// Formats the UTC time of day, as headings show it.
#[must_use]
pub fn format_time(at: Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M:%S").to_string()
}

fn to_json(message: &Message) -> String {
    serde_json::to_string(message).expect("serialises")
}

fn check_only_text(page: &str) {
    let (_, body) = page.split_once("</style>").expect("a style");
    for tag in body.split('<').skip(1) {
        let inside = tag.split('>').next().unwrap_or_default();
        let name = inside.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        assert!(ALLOWED_ELEMENTS.contains(&name), "<{inside}>");
        for attribute in [" on", " src=", " href=", " style="] {
            let value = inside.split_once(attribute).map(|(_, value)| value);
            let fine = value.is_none_or(|value| match attribute {
                " href=" => {
                    // The last one is an anchor of the page.
                    ["\"http:", "\"https:", "\"mailto:", "\"#m"]
                        .iter()
                        .any(|scheme| value.to_lowercase().starts_with(scheme))
                }
                // The alignment of a table column.
                " style=" => value.starts_with("\"text-align: "),
                " src=" => value.starts_with("\"data:image/"),
                _ => inside.contains('"') && !inside.split('"').step_by(2).any(|outside| outside.contains(" on")),
            });
            assert!(fine, "<{inside}>");
        }
    }
    let unseen =
        page.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{202a}'..='\u{202e}'));
    assert_eq!(unseen, None, "{page}");
}

/// Collects an imported session.
#[derive(Debug, Default)]
struct CollectingSink {
    messages: Vec<String>,
    about: Option<ImportedMetadata>,
}

impl ImportSink for CollectingSink {
    fn begin_session(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn add_message(&mut self, message: &Message, _json: &[u8]) -> io::Result<()> {
        self.messages.push(to_json(message));
        Ok(())
    }

    fn end_session(&mut self, about: ImportedMetadata) -> io::Result<()> {
        self.about = Some(about);
        Ok(())
    }

    fn report_skipped(&mut self, line: u64, reason: String) {
        panic!("line {line} is skipped: {reason}");
    }
}
