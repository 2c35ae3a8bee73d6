//! The lines that give a conversation in Markdown its structure. What is exported is read back by the same rules, so
//! a text that holds such a line itself goes into a fenced block.

use chorus_proto::{Message, Role};
use jiff::Timestamp;

/// Before the session's header as JSON.
pub const SESSION: &str = "<!-- chorus session ";
/// Before what a message says besides its text and calls, as JSON; on the line after the heading.
pub const MESSAGE: &str = "<!-- chorus message ";
/// After either.
pub const END: &str = " -->";

/// Shortest fence.
const FENCE: usize = 3;

const ROLES: [(&str, Role); 4] =
    [("System", Role::System), ("User", Role::User), ("Assistant", Role::Assistant), ("Tool result", Role::ToolResult)];

/// The heading of a message: `## User (mara) · 2026-03-02T14:58:03.117Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heading {
    pub role: Role,
    pub at: Option<Timestamp>,
}

impl Heading {
    /// Reads a line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("## ")?.trim_end();
        let (who, at) = match rest.rsplit_once(" · ") {
            Some((who, at)) => (who, Some(at.parse().ok()?)),
            None => (rest, None),
        };
        let (name, role) = ROLES.into_iter().find(|(name, _)| who.starts_with(name))?;
        let whose = &who[name.len()..];
        (whose.is_empty() || whose.starts_with(" (") && whose.ends_with(')')).then_some(Self { role, at })
    }
}

/// The heading of `message`.
#[must_use]
pub fn heading(message: &Message) -> String {
    let role = ROLES.into_iter().find(|(_, role)| *role == message.role).map_or("User", |(name, _)| name);
    let whose = message.author.as_ref().map(|author| &author.name).or(message.name.as_ref());
    let whose = whose.map(|name| format!(" ({})", one_line(name))).unwrap_or_default();
    format!("## {role}{whose} · {}", message.timestamp)
}

/// What a fenced block of ours holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The text of the message.
    Content,
    /// The parameters of a call.
    Call { id: String, name: String },
}

impl Block {
    /// Reads the line that opens a block; gives its fence too.
    #[must_use]
    pub fn parse(line: &str) -> Option<(&str, Self)> {
        let fence = line.bytes().take_while(|byte| *byte == b'`').count();
        if fence < FENCE {
            return None;
        }
        let (fence, info) = line.split_at(fence);
        let info = info.trim_end();
        if info == "text content" {
            return Some((fence, Self::Content));
        }
        let mut words = serde_json::Deserializer::from_str(info.strip_prefix("json call ")?).into_iter::<String>();
        let (id, name) = (words.next()?.ok()?, words.next()?.ok()?);
        words.next().is_none().then_some((fence, Self::Call { id, name }))
    }

    /// The block around `inside`, ended by a line end.
    #[must_use]
    pub fn around(&self, inside: &str) -> String {
        let info = match self {
            Self::Content => "text content".to_owned(),
            Self::Call { id, name } => format!("json call {} {}", word(id), word(name)),
        };
        let fence = "`".repeat(longest_run(inside).max(FENCE - 1) + 1);
        format!("{fence}{info}\n{inside}\n{fence}\n")
    }
}

/// A JSON string without a backtick, which may not stand after a fence.
fn word(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('`', "\\u0060")
}

/// The most backticks in a row.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// `json` between a mark and [`END`]: two hyphens would end the comment.
#[must_use]
pub fn comment(mark: &str, json: &str) -> String {
    format!("{mark}{}{END}\n", json.replace("--", "-\\u002d"))
}

/// The JSON of a comment line.
#[must_use]
pub fn commented<'a>(mark: &str, line: &'a str) -> Option<&'a str> {
    line.trim_end().strip_prefix(mark)?.strip_suffix(END.trim_end()).map(str::trim_end)
}

/// Whether `text` reads back as it is, and leaves what follows it readable.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let mut open: Option<&str> = None;
    for line in text.split('\n') {
        if Heading::parse(line).is_some() || Block::parse(line).is_some() || line.contains("<!--") {
            return false;
        }
        let start = line.trim_start_matches(' ');
        let run = start.len() - start.trim_start_matches(['`', '~']).len();
        if run >= FENCE {
            open = match open {
                None => Some(&start[..run]),
                Some(fence) if start.starts_with(fence) && start[run..].trim().is_empty() => None,
                still => still,
            };
        }
    }
    open.is_none()
}

/// `text` without line breaks.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_read() {
        let at = "2026-03-02T14:58:03.117Z".parse().ok();
        for (line, role) in [
            ("## User · 2026-03-02T14:58:03.117Z", Role::User),
            ("## User (mara · b) · 2026-03-02T14:58:03.117Z", Role::User),
            ("## Tool result (view) · 2026-03-02T14:58:03.117Z", Role::ToolResult),
        ] {
            assert_eq!(Heading::parse(line), Some(Heading { role, at }), "{line}");
        }
        assert_eq!(Heading::parse("## Assistant").map(|heading| heading.at), Some(None));
        for line in ["# User", "## Users", "## User · noon", "## Userland · 2026-03-02T14:58:03Z", "text"] {
            assert_eq!(Heading::parse(line), None, "{line}");
        }
    }

    #[test]
    fn blocks_hold_anything() {
        let call = Block::Call { id: "a `b`\"".into(), name: "c\nd".into() };
        for (block, inside) in [(&call, "{}"), (&Block::Content, "````\nx``\n`````")] {
            let text = block.around(inside);
            let (first, rest) = text.split_once('\n').unwrap();
            let (fence, read) = Block::parse(first).unwrap();
            assert_eq!(&read, block);
            assert_eq!(rest, format!("{inside}\n{fence}\n"));
            assert!(!inside.lines().any(|line| line == fence));
        }
        assert_eq!(Block::parse("```json"), None);
        assert_eq!(Block::parse("``text content"), None);
    }

    #[test]
    fn comments_do_not_end_early() {
        let text = comment(MESSAGE, r#"{"a":"x ---> y"}"#);
        assert_eq!(text.matches("--").count(), 2);
        let json = commented(MESSAGE, text.trim_end()).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(json).unwrap()["a"], "x ---> y");
    }

    #[test]
    fn what_would_be_misread_is_not_plain() {
        for text in ["", "a\n\n# b\n", "```rust\nfn\n```", "~~~\n```\n~~~"] {
            assert!(is_plain(text), "{text}");
        }
        for text in ["## User", "x\n```text content\n", "```\nleft open", "<!-- hidden"] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
