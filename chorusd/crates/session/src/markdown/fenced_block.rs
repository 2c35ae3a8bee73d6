//! Fenced blocks that hold tool calls and text that is not safe as plain Markdown.

use super::char_escape::{escape, needs_escape, unescape};

/// Length of the shortest fence.
pub(super) const MIN_FENCE_LEN: usize = 3;

/// The content of a fenced block that Chorus wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The text of the message.
    Content,
    /// The parameters of a tool call.
    Call { id: String, name: String },
}

/// A fenced block that Chorus wrote, parsed from its opening line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FencedBlock {
    pub kind: BlockKind,
    /// The text is escaped, see [`escape`].
    escaped: bool,
}

impl FencedBlock {
    /// Parses the opening line of a block. Returns the fence, too.
    #[must_use]
    pub(crate) fn parse(line: &str) -> Option<(&str, Self)> {
        let fence = line.bytes().take_while(|byte| *byte == b'`').count();
        if fence < MIN_FENCE_LEN {
            return None;
        }
        let (fence, info) = line.split_at(fence);
        let info = info.trim_end();
        if let Some(rest) = info.strip_prefix("text content") {
            let escaped = rest == " escaped";
            return (escaped || rest.is_empty()).then_some((fence, Self { kind: BlockKind::Content, escaped }));
        }
        let words = info.strip_prefix("json call ")?;
        let (escaped, words) = words.strip_prefix("escaped ").map_or((false, words), |words| (true, words));
        let mut words = serde_json::Deserializer::from_str(words).into_iter::<String>();
        let (id, name) = (words.next()?.ok()?, words.next()?.ok()?);
        words.next().is_none().then_some((fence, Self { kind: BlockKind::Call { id, name }, escaped }))
    }

    /// Returns the original text for the lines `inside` the block.
    #[must_use]
    pub(crate) fn decode(&self, inside: String) -> String {
        if self.escaped { unescape(&inside) } else { inside }
    }
}

impl BlockKind {
    /// Renders the block around `inside`, with a newline at its end.
    #[must_use]
    pub(crate) fn render(&self, inside: &str) -> String {
        let escaped = needs_escape(inside);
        let inside = if escaped { escape(inside) } else { inside.to_owned() };
        let info = match (self, escaped) {
            (Self::Content, false) => "text content".to_owned(),
            (Self::Content, true) => "text content escaped".to_owned(),
            (Self::Call { id, name }, false) => format!("json call {} {}", quote_word(id), quote_word(name)),
            (Self::Call { id, name }, true) => format!("json call escaped {} {}", quote_word(id), quote_word(name)),
        };
        let fence = "`".repeat(longest_backtick_run(&inside).max(MIN_FENCE_LEN - 1) + 1);
        format!("{fence}{info}\n{inside}\n{fence}\n")
    }
}

/// Quotes `text` as a JSON string in ASCII. Escapes backticks, which may not follow a fence, and `<`, which could begin
/// a comment.
fn quote_word(text: &str) -> String {
    let mut word = String::new();
    for c in serde_json::Value::from(text).to_string().chars() {
        match c {
            ' '..='~' if !matches!(c, '`' | '<') => word.push(c),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| word.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    word
}

/// Returns the length of the longest run of backticks.
fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_anything() {
        let call = BlockKind::Call { id: "a `b`\"\u{2028}<!-- é👍".into(), name: "c\nd".into() };
        for (holds, inside) in
            [(&call, "{}"), (&BlockKind::Content, "````\nx``\n`````"), (&BlockKind::Content, "a\r\n\\b\0")]
        {
            let text = holds.render(inside);
            let (first, rest) = text.split_once('\n').unwrap();
            let (fence, block) = FencedBlock::parse(first).unwrap();
            assert_eq!(&block.kind, holds);
            let lines = rest.strip_suffix(&format!("\n{fence}\n")).unwrap();
            assert!(!lines.lines().any(|line| line == fence));
            assert_eq!(block.decode(lines.to_owned()), inside);
        }
        for line in ["```json", "``text content", "```text contents", "```json call \"a\""] {
            assert_eq!(FencedBlock::parse(line), None, "{line}");
        }
    }
}
