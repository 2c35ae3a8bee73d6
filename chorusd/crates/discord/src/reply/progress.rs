//! Progress of a turn, collected from its events, and its text in the live message.

use chorus_proto::methods::send::TurnEvent;
use chorus_proto::tool_gist;
use uuid::Uuid;

use crate::commands::rewrite_message;
use crate::render;
use crate::render::MAX_MESSAGE_CHARS;

/// Characters that are reserved for the status line.
const MAX_STATUS_CHARS: usize = 200;

/// The progress of a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnProgress {
    /// The id of the turn, by which it can be stopped.
    pub turn: Option<Uuid>,
    /// What the model has said since its last tool call.
    pub text: String,
    /// Bytes of output of the model, thinking included.
    output_bytes: usize,
    tool_count: usize,
    activity: Activity,
    /// Approvals that wait for a person.
    open_approvals: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Activity {
    #[default]
    Starting,
    Queued(u64),
    Thinking,
    Writing,
    RunningTool(String),
    UsedTool(String),
    Note(String),
}

impl TurnProgress {
    /// Shows no turn until the next one starts; the text stays. Returns the turn that was shown.
    pub(super) fn pause(&mut self) -> Option<Uuid> {
        let text = std::mem::take(&mut self.text);
        std::mem::replace(self, Self { text, ..Self::default() }).turn
    }

    pub(super) fn apply(&mut self, said: &TurnEvent) {
        let doing = match said {
            TurnEvent::Queued { before, turn_id } => {
                self.turn = turn_id.or(self.turn);
                Activity::Queued(*before)
            }
            TurnEvent::Started { turn_id } => {
                self.turn = Some(*turn_id);
                // Of an attempt before.
                self.text.clear();
                Activity::Thinking
            }
            TurnEvent::Thinking(text) => {
                self.output_bytes += text.len();
                Activity::Thinking
            }
            TurnEvent::Text(text) => {
                if matches!(self.activity, Activity::UsedTool(_)) {
                    self.text.clear();
                }
                self.output_bytes += text.len();
                self.text.push_str(text);
                Activity::Writing
            }
            TurnEvent::Tool { name, gist, .. } => {
                self.tool_count += 1;
                let name = tool_gist::display_name(name);
                Activity::RunningTool(gist.as_ref().map_or_else(|| name.to_owned(), |gist| format!("{name} {gist}")))
            }
            TurnEvent::Result { name, is_error: true, .. } => {
                Activity::UsedTool(format!("{} failed", tool_gist::display_name(name)))
            }
            TurnEvent::Result { name, .. } => Activity::UsedTool(format!("{}, done", tool_gist::display_name(name))),
            TurnEvent::Ask { .. } => {
                self.open_approvals += 1;
                return;
            }
            TurnEvent::Decided { .. } => {
                self.open_approvals = self.open_approvals.saturating_sub(1);
                return;
            }
            // Only for clients that are attached to a conversation.
            TurnEvent::Attached { .. } | TurnEvent::Message { .. } | TurnEvent::Ended { .. } => return,
            TurnEvent::Note(note) => Activity::Note(rewrite_message(note)),
        };
        self.activity = doing;
    }

    /// Returns whether the model or a tool is working, that is, the turn waits neither for a person nor for other
    /// turns.
    #[must_use]
    pub(super) fn is_working(&self) -> bool {
        self.open_approvals == 0 && !matches!(self.activity, Activity::Starting | Activity::Queued(_))
    }

    /// Returns the end of the text and a status line; at most [`MAX_MESSAGE_CHARS`] characters.
    #[must_use]
    pub(super) fn live_text(&self) -> String {
        let line = self.status_line();
        let text = render::tail(&self.text, MAX_MESSAGE_CHARS - MAX_STATUS_CHARS - 2);
        if text.trim().is_empty() { line } else { format!("{}\n{line}", text.trim_end()) }
    }

    fn status_line(&self) -> String {
        let doing = match &self.activity {
            _ if self.open_approvals > 0 => "waiting for approval".to_owned(),
            Activity::Starting => "starting".to_owned(),
            Activity::Queued(1) => return "-# waiting for 1 earlier message".to_owned(),
            Activity::Queued(before) => return format!("-# waiting for {before} earlier messages"),
            Activity::Thinking => "thinking".to_owned(),
            Activity::Writing => "writing".to_owned(),
            Activity::RunningTool(name) => name.clone(),
            Activity::UsedTool(outcome) => outcome.clone(),
            Activity::Note(note) => note.clone(),
        };
        let step = self.tool_count
            + usize::from(
                !matches!(self.activity, Activity::RunningTool(_) | Activity::UsedTool(_)) || self.tool_count == 0,
            );
        let doing: String = doing.chars().filter(|c| !c.is_control()).take(MAX_STATUS_CHARS - 60).collect();
        format!("-# step {step} · {doing} · ~{} tokens", self.output_bytes.div_ceil(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> TurnEvent {
        TurnEvent::Text(text.into())
    }

    #[test]
    fn the_line_says_what_is_done() {
        let mut heard = TurnProgress::default();
        let mut after = |said: TurnEvent| {
            heard.apply(&said);
            heard.live_text()
        };
        let id = Uuid::from_u128(7);
        assert_eq!(after(TurnEvent::Queued { before: 2, turn_id: Some(id) }), "-# waiting for 2 earlier messages");
        assert!(!TurnProgress { activity: Activity::Queued(2), ..TurnProgress::default() }.is_working());
        assert!(TurnProgress { activity: Activity::Thinking, ..TurnProgress::default() }.is_working());
        assert_eq!(after(TurnEvent::Started { turn_id: id }), "-# step 1 · thinking · ~0 tokens");
        assert_eq!(after(said("I look.")), "I look.\n-# step 1 · writing · ~2 tokens");
        let tool = |name: &str| TurnEvent::Tool { id: "1".into(), name: name.into(), gist: None };
        assert_eq!(after(tool("bash")), "I look.\n-# step 1 · bash · ~2 tokens");
        let done =
            TurnEvent::Result { id: "1".into(), name: "bash".into(), is_error: false, output: None, message: None };
        assert_eq!(after(done), "I look.\n-# step 1 · bash, done · ~2 tokens");
        assert_eq!(after(tool("view")), "I look.\n-# step 2 · view · ~2 tokens");
        after(TurnEvent::Result { id: "2".into(), name: "view".into(), is_error: true, output: None, message: None });
        assert_eq!(after(said("Well.")), "Well.\n-# step 3 · writing · ~3 tokens");
        assert_eq!(heard.turn, Some(id));
    }

    #[test]
    fn what_is_shown_fits_however_much_is_said() {
        let mut heard = TurnProgress::default();
        for _ in 0..150 {
            heard.apply(&said("```rust\nlet a = 1;\n"));
            heard.apply(&TurnEvent::Note("n".repeat(3000)));
            assert!(heard.live_text().chars().count() <= MAX_MESSAGE_CHARS);
        }
    }
}
