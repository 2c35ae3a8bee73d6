//! Fenced blocks that hold tool calls and text that is not safe as plain Markdown.

use super::char_escape::{escape, needs_escape, unescape};

/// Length of the shortest fence.
pub(super) const MIN_FENCE_LEN: usize = 3;

/// The content of a fenced block that Chorus wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The text of the message.
    Content,
    /// The parameters of a tool call. The id and the name are in the file's data.
    Call,
    /// The parameters of a tool call, as earlier releases wrote them.
    NamedCall { id: String, name: String },
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
        let words = info.strip_prefix("json call")?;
        if matches!(words, "" | " escaped") {
            return Some((fence, Self { kind: BlockKind::Call, escaped: !words.is_empty() }));
        }
        let words = words.strip_prefix(' ')?;
        let (escaped, words) = words.strip_prefix("escaped ").map_or((false, words), |words| (true, words));
        let mut words = serde_json::Deserializer::from_str(words).into_iter::<String>();
        let (id, name) = (words.next()?.ok()?, words.next()?.ok()?);
        words.next().is_none().then_some((fence, Self { kind: BlockKind::NamedCall { id, name }, escaped }))
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
        let info = match self {
            Self::Content => "text content",
            Self::Call | Self::NamedCall { .. } => "json call",
        };
        let info = if escaped { format!("{info} escaped") } else { info.to_owned() };
        let fence = "`".repeat(longest_backtick_run(&inside).max(MIN_FENCE_LEN - 1) + 1);
        format!("{fence}{info}\n{inside}\n{fence}\n")
    }
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
        for (holds, inside) in [
            (&BlockKind::Call, "{}"),
            (&BlockKind::Call, "\"<!-- chorus data\""),
            (&BlockKind::Content, "````\nx``\n`````"),
            (&BlockKind::Content, "a\r\n\\b\0"),
        ] {
            let text = holds.render(inside);
            let (first, rest) = text.split_once('\n').unwrap();
            let (fence, block) = FencedBlock::parse(first).unwrap();
            assert_eq!(&block.kind, holds);
            let lines = rest.strip_suffix(&format!("\n{fence}\n")).unwrap();
            assert!(!lines.lines().any(|line| line == fence));
            assert_eq!(block.decode(lines.to_owned()), inside);
        }
        let (_, block) = FencedBlock::parse(r#"```json call escaped "a `" "b\n""#).unwrap();
        assert_eq!(block.kind, BlockKind::NamedCall { id: "a `".into(), name: "b\n".into() });
        for line in ["```json", "``text content", "```text contents", "```json call \"a\"", "```json callx"] {
            assert_eq!(FencedBlock::parse(line), None, "{line}");
        }
    }
}
