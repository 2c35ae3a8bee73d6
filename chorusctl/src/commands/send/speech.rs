//! A turn shown as it comes: the text of the reply on standard output, everything else on standard error.

use chorus_proto::methods::send::Said;

use crate::error::Failure;
use crate::ui::words::count;
use crate::ui::{Notes, Out, Style, safe, terminal};

/// Shows one turn.
#[derive(Debug)]
pub struct Speech {
    notes: Notes,
    /// Notes and calls are told.
    told: bool,
    /// The text is shown as it comes.
    stream: bool,
    thinking: bool,
    /// Standard output and standard error are one screen: what goes to one must not land in a line of the other.
    one_screen: bool,
    /// The last line of the text has no end yet.
    open: bool,
    /// The last line of what is thought has none.
    thought: bool,
    /// Something else came after the text: what follows is a new paragraph.
    broken_off: bool,
    said: bool,
    /// A `\r` at the end of a piece: what it means is told by the next.
    held: bool,
}

impl Speech {
    /// A turn of which nothing was shown yet.
    #[must_use]
    pub fn new(out: &Out, notes: Notes, stream: bool, thinking: bool) -> Self {
        let one_screen = out.terminal() && terminal::errors_shown();
        Self {
            notes,
            told: !out.quiet(),
            stream,
            thinking,
            one_screen,
            open: false,
            thought: false,
            broken_off: false,
            said: false,
            held: false,
        }
    }

    /// Shows a piece.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn hear(&mut self, out: &mut Out, said: &Said) -> Result<(), Failure> {
        match said {
            Said::Text(text) if self.stream => self.text(out, text),
            Said::Thinking(text) if self.thinking => self.think(out, text),
            Said::Tool { name, .. } => {
                self.broken_off = true;
                self.note(out, Style::Tool, &format!("→ {}", safe::one_line(name)))
            }
            Said::Result { name, is_error: true, .. } => {
                self.note(out, Style::Tool, &format!("✗ {} failed", safe::one_line(name)))
            }
            Said::Note(text) => self.note(out, Style::Faint, &safe::one_line(text)),
            Said::Queued { before, .. } if *before > 0 => {
                self.note(out, Style::Faint, &format!("queued: {} before it", count(*before, "turn")))
            }
            _ => Ok(()),
        }
    }

    /// Ends a turn with its reply. What was streamed is not said again; the answer to a key that was used before, and a
    /// reply that was not streamed, come whole.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn end(&mut self, out: &mut Out, reply: &str) -> Result<(), Failure> {
        if !self.said && !reply.is_empty() {
            self.text(out, reply)?;
        }
        if !self.said && reply.is_empty() {
            self.note(out, Style::Faint, "the model said nothing")?;
        }
        self.break_off(out)
    }

    /// Ends the lines that are open.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn break_off(&mut self, out: &mut Out) -> Result<(), Failure> {
        self.end_thought();
        if std::mem::take(&mut self.held) {
            out.text(&safe::clean("\r"))?;
        }
        self.end_line(out)
    }

    /// Something that is no part of the turn's text comes on standard error.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn make_way(&mut self, out: &mut Out) -> Result<(), Failure> {
        self.broken_off = true;
        self.end_thought();
        self.make_room(out)
    }

    fn text(&mut self, out: &mut Out, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.end_thought();
        if std::mem::take(&mut self.broken_off) && self.said {
            self.end_line(out)?;
            out.text("\n")?;
        }
        // A terminal is not to be driven by what a model says; whoever has it in a file wants what was said.
        if out.terminal() {
            let whole = if std::mem::take(&mut self.held) { format!("\r{text}") } else { text.to_owned() };
            let shown = whole.strip_suffix('\r').unwrap_or(&whole);
            self.held = shown.len() < whole.len();
            out.text(&safe::clean(shown))?;
        } else {
            out.text(text)?;
        }
        self.said = true;
        self.open = !text.ends_with('\n');
        out.flush()
    }

    fn think(&mut self, out: &mut Out, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.make_room(out)?;
        self.notes.part(Style::Faint, text);
        self.thought = !text.ends_with('\n');
        Ok(())
    }

    fn note(&mut self, out: &mut Out, style: Style, line: &str) -> Result<(), Failure> {
        if self.told {
            self.end_thought();
            self.make_room(out)?;
            self.notes.styled(style, line);
        }
        Ok(())
    }

    /// Something for standard error comes.
    fn make_room(&mut self, out: &mut Out) -> Result<(), Failure> {
        if self.one_screen && self.open { self.end_line(out) } else { Ok(()) }
    }

    fn end_line(&mut self, out: &mut Out) -> Result<(), Failure> {
        if std::mem::take(&mut self.open) {
            out.text("\n")?;
        }
        out.flush()
    }

    fn end_thought(&mut self) {
        if std::mem::take(&mut self.thought) {
            self.notes.line("");
        }
    }
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::send::Said::{Text, Tool};

    use super::*;

    fn shown(width: Option<usize>, pieces: &[Said], reply: &str) -> Result<String, Failure> {
        let mut out = Out::captured(width);
        let mut speech = Speech { told: false, ..Speech::new(&out, Notes::new(Default::default()), true, false) };
        for piece in pieces {
            speech.hear(&mut out, piece)?;
        }
        speech.end(&mut out, reply)?;
        Ok(out.written().to_owned())
    }

    fn text(text: &str) -> Said {
        Text(text.to_owned())
    }

    #[test]
    fn a_reply_ends_with_one_line_end() -> Result<(), Failure> {
        assert_eq!(shown(None, &[text("a"), text(""), text("b")], "ab")?, "ab\n");
        assert_eq!(shown(None, &[text("a\n")], "a\n")?, "a\n");
        assert_eq!(shown(None, &[], "whole")?, "whole\n");
        assert_eq!(shown(None, &[], "")?, "");
        Ok(())
    }

    #[test]
    fn what_comes_after_a_call_is_a_new_paragraph() -> Result<(), Failure> {
        let call = || Tool { id: "c".into(), name: "list_models".into() };
        assert_eq!(
            shown(None, &[text("Let me look."), call(), call(), text("Two.")], "Two.")?,
            "Let me look.\n\nTwo.\n"
        );
        assert_eq!(shown(None, &[call(), text("Two.")], "Two.")?, "Two.\n");
        Ok(())
    }

    #[test]
    fn a_terminal_is_not_driven_and_a_pipe_has_what_was_said() -> Result<(), Failure> {
        let pieces = [text("a\r"), text("\nb\x1b[2J\r"), text("c\r")];
        assert_eq!(shown(None, &pieces, "")?, "a\r\nb\x1b[2J\rc\r\n");
        assert_eq!(shown(Some(80), &pieces, "")?, "a\nb␛[2J␍c␍\n");
        Ok(())
    }
}
