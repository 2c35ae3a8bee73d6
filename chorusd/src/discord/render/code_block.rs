//! Blocks of code as Discord sees them: between three backticks and the next three, wherever they stand.

/// What opens and closes a block.
pub const FENCE: &str = "```";

/// Characters of a language's name at most; what is longer is none.
const MAX_LANGUAGE_CHARS: usize = 24;

/// A step through a text: what must not be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'t> {
    /// Three backticks, and the language with the end of its line where they begin a block.
    Opens(&'t str),
    Closes(&'t str),
    /// Anything else; one character as people see them.
    Other(&'t str),
}

/// The language that the opening `token` names, with nothing around it.
fn language(token: &str) -> &str {
    token.trim_start_matches('`').trim()
}

/// Where a text is: in a block or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FenceState<'t> {
    /// The language of the block; empty: it has none.
    language: Option<&'t str>,
}

impl<'t> FenceState<'t> {
    pub fn is_in_block(self) -> bool {
        self.language.is_some()
    }

    /// Where the text is behind `token`.
    pub fn after(self, token: Token<'t>) -> Self {
        match token {
            Token::Opens(token) => Self { language: Some(language(token)) },
            Token::Closes(_) => Self { language: None },
            Token::Other(_) => self,
        }
    }

    /// What opens the block again in another message.
    pub fn opening_fence(self) -> String {
        self.language.map_or_else(String::new, |language| format!("{FENCE}{language}\n"))
    }

    /// What closes the block behind `text`.
    pub fn closing_fence(self, text: &str) -> &'static str {
        match (self.is_in_block(), text.ends_with('\n')) {
            (false, _) => "",
            (true, true) => FENCE,
            (true, false) => "\n```",
        }
    }

    /// The token that `rest`, which is not empty, begins with; `grapheme` is its first character.
    pub fn next_token(self, rest: &'t str, grapheme: &'t str) -> Token<'t> {
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
    pub fn text(self) -> &'t str {
        let (Self::Opens(text) | Self::Closes(text) | Self::Other(text)) = self;
        text
    }
}
