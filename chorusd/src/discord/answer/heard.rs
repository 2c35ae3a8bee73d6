//! What was said in a turn so far, and how that looks in a channel.

use chorus_proto::methods::send::Said;
use uuid::Uuid;

use crate::discord::render::{self, MOST};

/// Room for the line that says how far the turn is.
const LINE: usize = 200;

/// A turn as it was heard.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// What is said to it; it may be stopped by that.
    pub turn: Option<Uuid>,
    /// What the model says since its last tool.
    pub text: String,
    /// Bytes that the model has said, its thoughts and all.
    said: usize,
    tools: usize,
    doing: Doing,
    /// Questions that wait for a person.
    open: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Nothing,
    Waiting(u64),
    Thinking,
    Writing,
    Tool(String),
    Used(String),
    Note(String),
}

impl Heard {
    pub fn hear(&mut self, said: &Said) {
        let doing = match said {
            Said::Queued { before, turn_id } => {
                self.turn = turn_id.or(self.turn);
                Doing::Waiting(*before)
            }
            Said::Started { turn_id } => {
                self.turn = Some(*turn_id);
                Doing::Thinking
            }
            Said::Thinking(text) => {
                self.said += text.len();
                Doing::Thinking
            }
            Said::Text(text) => {
                if matches!(self.doing, Doing::Used(_)) {
                    self.text.clear();
                }
                self.said += text.len();
                self.text.push_str(text);
                Doing::Writing
            }
            Said::Tool { name, .. } => {
                self.tools += 1;
                Doing::Tool(name.clone())
            }
            Said::Result { name, .. } => Doing::Used(name.clone()),
            Said::Ask { .. } => {
                self.open += 1;
                return;
            }
            Said::Decided { .. } => {
                self.open = self.open.saturating_sub(1);
                return;
            }
            Said::Note(note) => Doing::Note(note.clone()),
        };
        self.doing = doing;
    }

    /// Whether the model or a tool works, and waits for nobody.
    #[must_use]
    pub fn works(&self) -> bool {
        self.open == 0 && !matches!(self.doing, Doing::Nothing | Doing::Waiting(_))
    }

    /// The end of the text, and how far the turn is; at most [`MOST`] characters.
    #[must_use]
    pub fn shown(&self) -> String {
        let line = self.line();
        let text = render::tail(&self.text, MOST - LINE - 2);
        if text.trim().is_empty() { line } else { format!("{}\n{line}", text.trim_end()) }
    }

    fn line(&self) -> String {
        let doing = match &self.doing {
            _ if self.open > 0 => "waits for approval".to_owned(),
            Doing::Nothing => "begins".to_owned(),
            Doing::Waiting(1) => return "-# waits for the turn before it".to_owned(),
            Doing::Waiting(before) => return format!("-# waits for {before} turns before it"),
            Doing::Thinking => "thinks".to_owned(),
            Doing::Writing => "writes".to_owned(),
            Doing::Tool(name) => name.clone(),
            Doing::Used(name) => format!("{name}, done"),
            Doing::Note(note) => note.clone(),
        };
        let step = self.tools + usize::from(!matches!(self.doing, Doing::Tool(_) | Doing::Used(_)) || self.tools == 0);
        let doing: String = doing.chars().filter(|c| !c.is_control()).take(LINE - 60).collect();
        format!("-# step {step} · {doing} · ~{} tokens", self.said.div_ceil(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        Said::Text(text.into())
    }

    #[test]
    fn the_line_says_what_is_done() {
        let mut heard = Heard::default();
        let mut after = |said: Said| {
            heard.hear(&said);
            heard.shown()
        };
        let id = Uuid::from_u128(7);
        assert_eq!(after(Said::Queued { before: 2, turn_id: Some(id) }), "-# waits for 2 turns before it");
        assert!(!Heard { doing: Doing::Waiting(2), ..Heard::default() }.works());
        assert!(Heard { doing: Doing::Thinking, ..Heard::default() }.works());
        assert_eq!(after(Said::Started { turn_id: id }), "-# step 1 · thinks · ~0 tokens");
        assert_eq!(after(said("I look.")), "I look.\n-# step 1 · writes · ~2 tokens");
        let tool = |name: &str| Said::Tool { id: "1".into(), name: name.into() };
        assert_eq!(after(tool("bash")), "I look.\n-# step 1 · bash · ~2 tokens");
        let done = Said::Result { id: "1".into(), name: "bash".into(), is_error: false };
        assert_eq!(after(done), "I look.\n-# step 1 · bash, done · ~2 tokens");
        assert_eq!(after(tool("view")), "I look.\n-# step 2 · view · ~2 tokens");
        after(Said::Result { id: "2".into(), name: "view".into(), is_error: true });
        assert_eq!(after(said("Well.")), "Well.\n-# step 3 · writes · ~3 tokens");
        assert_eq!(heard.turn, Some(id));
    }

    #[test]
    fn what_is_shown_fits_however_much_is_said() {
        let mut heard = Heard::default();
        for _ in 0..150 {
            heard.hear(&said("```rust\nlet a = 1;\n"));
            heard.hear(&Said::Note("n".repeat(3000)));
            assert!(heard.shown().chars().count() <= MOST);
        }
    }
}
