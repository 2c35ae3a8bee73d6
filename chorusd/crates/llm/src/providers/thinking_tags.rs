//! Separates thinking from text if the model writes it between tags at the beginning of its reply and the server does
//! not remove it: <https://github.com/ggml-org/llama.cpp/issues/13867>,
//! <https://github.com/ollama/ollama-js/issues/196>.

/// The tags in use: those of DeepSeek and Qwen, and those of others.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Incremental splitter of a streamed text.
#[derive(Debug, Default)]
pub(super) struct ThinkingSplitter {
    at: SplitState,
    /// Text that may be the beginning of a tag.
    held: String,
}

#[derive(Debug, Default, Clone, Copy)]
enum SplitState {
    /// Only white space has come so far.
    #[default]
    Beginning,
    /// Inside the thinking; the value is the closing tag.
    Inside(&'static str),
    /// After the thinking, where white space before the text is dropped.
    Behind,
    Answer,
}

/// A piece, split into thinking and text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SplitText {
    pub thinking: String,
    pub text: String,
}

impl ThinkingSplitter {
    /// Splits the next piece.
    pub(super) fn push(&mut self, piece: String) -> SplitText {
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

    /// Returns the held text at the end of the reply, unless it belongs to thinking that was never closed.
    pub(super) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        if matches!(self.at, SplitState::Inside(_)) { String::new() } else { held }
    }
}

/// Number of bytes at the end of `text` that may begin `tag`.
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
