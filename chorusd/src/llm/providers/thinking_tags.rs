//! Thinking that a model writes into its answer, between tags at its beginning. Servers that do not take it out send it as text:
//! <https://github.com/ggml-org/llama.cpp/issues/13867>, <https://github.com/ollama/ollama-js/issues/196>.

/// The tags in use: DeepSeek's and Qwen's, and that of others.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Takes the thinking out of a text that comes in pieces.
#[derive(Debug, Default)]
pub struct ThinkingSplitter {
    at: SplitState,
    /// What may be the beginning of a tag.
    held: String,
}

#[derive(Debug, Default, Clone, Copy)]
enum SplitState {
    /// Nothing but white space has come.
    #[default]
    Beginning,
    /// What ends it.
    Inside(&'static str),
    /// Behind it, where the white space before the answer is left out.
    Behind,
    Answer,
}

/// What a piece is of.
#[derive(Debug, PartialEq, Eq)]
pub struct SplitText {
    pub thinking: String,
    pub text: String,
}

impl ThinkingSplitter {
    /// Takes a piece.
    pub fn push(&mut self, piece: String) -> SplitText {
        let mut parts = SplitText { thinking: String::new(), text: String::new() };
        if matches!(self.at, SplitState::Answer) {
            parts.text = piece;
            return parts;
        }
        self.held.push_str(&piece);
        loop {
            match self.at {
                SplitState::Beginning => {
                    let said = self.held.trim_start();
                    if let Some((open, close)) = TAGS.iter().find(|(open, _)| said.starts_with(open)) {
                        self.held = said[open.len()..].to_owned();
                        self.at = SplitState::Inside(close);
                    } else if TAGS.iter().any(|(open, _)| open.starts_with(said)) {
                        return parts;
                    } else {
                        self.at = SplitState::Answer;
                    }
                }
                SplitState::Inside(close) => match self.held.split_once(close) {
                    Some((thinking, rest)) => {
                        parts.thinking.push_str(thinking);
                        self.held = rest.to_owned();
                        self.at = SplitState::Behind;
                    }
                    None => {
                        let sure = self.held.len() - partial_tag_len(&self.held, close);
                        parts.thinking.extend(self.held.drain(..sure));
                        return parts;
                    }
                },
                SplitState::Behind => {
                    let said = self.held.trim_start();
                    if said.is_empty() {
                        self.held.clear();
                        return parts;
                    }
                    self.held = said.to_owned();
                    self.at = SplitState::Answer;
                }
                SplitState::Answer => {
                    parts.text.push_str(&std::mem::take(&mut self.held));
                    return parts;
                }
            }
        }
    }

    /// Returns what was held at the end of the answer: text, unless the thinking never ended.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        if matches!(self.at, SplitState::Inside(_)) { String::new() } else { held }
    }
}

/// How many bytes at the end of `text` may begin `tag`.
fn partial_tag_len(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let (mut thinking, mut out) = (ThinkingSplitter::default(), (String::new(), String::new()));
        for piece in pieces {
            let parts = thinking.push(piece.to_owned());
            out.0.push_str(&parts.thinking);
            out.1.push_str(&parts.text);
        }
        out.1.push_str(&thinking.finish());
        out
    }

    #[test]
    fn thinking_is_taken_out_however_it_is_cut() {
        for (said, thought, text) in [
            ("<think>\nLet me see.\n</think>\n\nHello.", "\nLet me see.\n", "Hello."),
            ("\n<thinking>a < b, </think> no</thinking>Yes </think>.", "a < b, </think> no", "Yes </think>."),
            ("<think></think>ä", "", "ä"),
            ("<think>never ended</thi", "never ended", ""),
            ("<thin", "", "<thin"),
            ("Use <think> in your prompt.", "", "Use <think> in your prompt."),
            ("  <b>x</b>", "", "  <b>x</b>"),
            ("", "", ""),
        ] {
            let due = (thought.to_owned(), text.to_owned());
            assert_eq!(read([said]), due, "{said}");
            let single: Vec<String> = said.chars().map(String::from).collect();
            assert_eq!(read(single.iter().map(String::as_str)), due, "{said}");
        }
    }
}
