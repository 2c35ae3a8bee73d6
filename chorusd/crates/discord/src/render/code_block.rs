//! Code blocks as Discord parses them: from three backticks to the next three, wherever they stand.

/// Opens and closes a code block.
pub(super) const FENCE: &str = "```";

/// Characters of a language's name; a longer word is none.
const MAX_LANGUAGE_CHARS: usize = 24;

/// A piece of text that must not be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// Three backticks that open a block; with the language and the line end if a language follows.
    Opens(&'t str),
    Closes(&'t str),
    /// Anything else: one grapheme.
    Other(&'t str),
}

/// Returns the language that the opening `token` names, trimmed.
fn language(token: &str) -> &str {
    token.trim_start_matches('`').trim()
}

/// Whether a position in a text is inside a code block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FenceState<'t> {
    /// The language of the block; empty if it has none. `None` outside of a block.
    language: Option<&'t str>,
}

impl<'t> FenceState<'t> {
    pub(super) fn is_in_block(self) -> bool {
        self.language.is_some()
    }

    /// Returns the state behind `token`.
    pub(super) fn after(self, token: Token<'t>) -> Self {
        match token {
            Token::Opens(token) => Self { language: Some(language(token)) },
            Token::Closes(_) => Self { language: None },
            Token::Other(_) => self,
        }
    }

    /// Returns the text that reopens the block in the next message.
    pub(super) fn opening_fence(self) -> String {
        self.language.map_or_else(String::new, |language| format!("{FENCE}{language}\n"))
    }

    /// Returns the text that closes the block behind `text`.
    pub(super) fn closing_fence(self, text: &str) -> &'static str {
        match (self.is_in_block(), text.ends_with('\n')) {
            (false, _) => "",
            (true, true) => FENCE,
            (true, false) => "\n```",
        }
    }

    /// Returns the token at the beginning of `rest`, which is not empty; `grapheme` is its first grapheme.
    pub(super) fn next_token(self, rest: &'t str, grapheme: &'t str) -> Token<'t> {
        if !rest.starts_with(FENCE) {
            // An escaped backtick opens nothing.
            let escaped = !self.is_in_block() && rest.starts_with("\\`");
            return Token::Other(if escaped { &rest[..2] } else { grapheme });
        }
        if self.is_in_block() {
            return Token::Closes(&rest[..FENCE.len()]);
        }
        let named = rest[FENCE.len()..]
            .bytes()
            .take(MAX_LANGUAGE_CHARS)
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_+-.#".contains(byte))
            .count();
        let end = FENCE.len() + named;
        let line_ends = match rest.as_bytes()[end..] {
            [b'\n', ..] => end + 1,
            [b'\r', b'\n', ..] => end + 2,
            _ => FENCE.len(),
        };
        Token::Opens(&rest[..line_ends])
    }
}

impl<'t> Token<'t> {
    pub(super) fn text(self) -> &'t str {
        let (Self::Opens(text) | Self::Closes(text) | Self::Other(text)) = self;
        text
    }
}
