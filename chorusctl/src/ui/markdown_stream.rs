//! Splits streamed Markdown into blocks that can be rendered one by one.

/// Collects text as it arrives and returns the blocks that are complete.
#[derive(Debug, Default)]
pub struct MarkdownStream {
    /// The block that is not complete yet.
    pending: String,
    /// The position in `pending` up to which lines were looked at.
    scanned: usize,
    /// The fence that ends the open code block.
    fence: Option<String>,
    /// True if the line before was blank: the next one that is not indented begins a block.
    after_blank: bool,
}

impl MarkdownStream {
    /// Appends `text`. Returns the blocks that are complete, if any.
    #[must_use]
    pub fn push(&mut self, text: &str) -> Option<String> {
        self.pending.push_str(text);
        let mut complete = 0;
        while let Some(length) = self.pending[self.scanned..].find('\n') {
            let line = &self.pending[self.scanned..self.scanned + length];
            if self.after_blank && !line.trim().is_empty() && !continues_block(line) {
                complete = self.scanned;
            }
            self.after_blank = self.fence.is_none() && line.trim().is_empty();
            self.fence = match self.fence.take() {
                Some(fence)
                    if line.trim().starts_with(&fence) && line.trim().trim_start_matches(['`', '~']).is_empty() =>
                {
                    None
                }
                Some(fence) => Some(fence),
                None => opening_fence(line),
            };
            self.scanned += length + 1;
        }
        let rest = self.pending.split_off(complete);
        self.scanned -= complete;
        let blocks = std::mem::replace(&mut self.pending, rest);
        (!blocks.is_empty()).then_some(blocks)
    }

    /// Returns the block that is not complete yet.
    #[must_use]
    pub fn pending(&self) -> &str {
        &self.pending
    }

    /// Returns the beginning of the pending block whose rendered lines, except the last one, do not change whatever comes
    /// next: it ends at a word, outside of emphasis, code and links. Empty for a table, whose columns are not known yet.
    #[must_use]
    pub fn stable_prefix(&self) -> &str {
        if self.fence.is_some() {
            return &self.pending[..self.scanned];
        }
        if self.pending.trim_start().starts_with('|') {
            return "";
        }
        &self.pending[..stable_length(&self.pending)]
    }

    /// Returns what is left, at the end of the text.
    #[must_use]
    pub fn finish(&mut self) -> String {
        std::mem::take(self).pending
    }

    /// Returns true if nothing is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.trim().is_empty()
    }
}

/// Returns the length of the longest prefix that ends before white space with nothing open.
fn stable_length(text: &str) -> usize {
    let (mut stable, mut marks, mut ticks, mut brackets, mut in_address) = (0, 0_usize, 0_usize, 0_i64, false);
    let mut before = '\n';
    let mut line_start = true;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, c)| *c);
        let is_bullet = line_start && next.is_some_and(char::is_whitespace);
        match c {
            '`' => ticks += 1,
            // A run of them counts once.
            '*' | '~' if !is_bullet && before != c => marks += 1,
            // Within a word it is not emphasis.
            '_' if before != c && (!before.is_alphanumeric() || !next.is_some_and(char::is_alphanumeric)) => marks += 1,
            '[' | '<' => brackets += 1,
            ']' | '>' => brackets = (brackets - 1).max(0),
            '(' if before == ']' => in_address = true,
            ')' => in_address = false,
            c if c.is_whitespace() && ticks % 2 == 0 && marks % 2 == 0 && brackets == 0 && !in_address => stable = at,
            _ => {}
        }
        line_start = c == '\n' || (line_start && c == ' ');
        before = c;
    }
    stable
}

/// Returns true for a line after a blank one that belongs to the block before: an indented one, or the next item of a list.
fn continues_block(line: &str) -> bool {
    let trimmed = line.trim_start();
    let after_number = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_item = trimmed.starts_with("- ")
        || trimmed.starts_with("* ")
        || trimmed.starts_with("+ ")
        || (after_number.len() < trimmed.len() && (after_number.starts_with(". ") || after_number.starts_with(") ")));
    line.starts_with([' ', '\t']) || is_item
}

/// Returns the fence if `line` opens a code block.
fn opening_fence(line: &str) -> Option<String> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let count = line.chars().take_while(|c| *c == mark).count();
    (count >= 3).then(|| mark.to_string().repeat(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the blocks of `text`, pushed in pieces of `size` bytes.
    fn blocks(text: &str, size: usize) -> Vec<String> {
        let mut stream = MarkdownStream::default();
        let mut blocks = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            blocks.extend(stream.push(std::str::from_utf8(piece).expect("ASCII")));
        }
        blocks.push(stream.finish());
        blocks
    }

    #[test]
    fn a_paragraph_is_complete_when_the_next_one_begins() {
        for size in [1, 3, 100] {
            let text = "one\ntwo\n\nthree\n\nfour\n";
            assert_eq!(blocks(text, size).concat(), text);
        }
        assert_eq!(blocks("one\ntwo\n\nthree\n\nfour\n", 1), ["one\ntwo\n\n", "three\n\n", "four\n"]);
    }

    #[test]
    fn what_is_stable_ends_outside_of_emphasis_code_and_links() {
        let stable = |text: &str| {
            let mut stream = MarkdownStream::default();
            let _ = stream.push(text);
            stream.stable_prefix().to_owned()
        };
        assert_eq!(stable("one two thr"), "one two");
        assert_eq!(stable("one **two three"), "one");
        assert_eq!(stable("one **two** three"), "one **two**");
        assert_eq!(stable("a `b c"), "a");
        assert_eq!(stable("see [the page](https://a"), "see");
        assert_eq!(stable("a_b c_d e"), "a_b c_d");
        assert_eq!(stable("* item one"), "* item");
        assert_eq!(stable("| a | b |\n"), "");
        assert_eq!(stable("```\nlet x = **y\nhalf"), "```\nlet x = **y\n");
    }

    #[test]
    fn code_and_lists_stay_whole() {
        assert_eq!(blocks("```\na\n\nb\n```\n\nc\n", 1), ["```\na\n\nb\n```\n\n", "c\n"]);
        assert_eq!(blocks("- a\n\n- b\n\n  more\n\nc\n", 1), ["- a\n\n- b\n\n  more\n\n", "c\n"]);
        assert_eq!(blocks("1. a\n\n2. b\n\nc\n", 1), ["1. a\n\n2. b\n\n", "c\n"]);
    }
}
