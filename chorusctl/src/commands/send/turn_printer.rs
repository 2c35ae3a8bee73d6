//! Prints a turn while it runs: the reply's text on standard output, everything else on standard error.

use chorus_proto::methods::send::TurnEvent;

use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Stderr, Stdout, Style, sanitize, terminal};

/// Prints one turn.
#[derive(Debug)]
pub struct TurnPrinter {
    stderr: Stderr,
    /// Print notes and tool calls (false with --quiet).
    show_notes: bool,
    /// Print the text while it arrives.
    stream: bool,
    thinking: bool,
    /// Standard output and standard error are the same terminal: text for one must not start within a line of the
    /// other.
    shared_terminal: bool,
    /// The last line of the reply has no newline yet.
    text_line_open: bool,
    /// The last line of the thinking has no newline yet.
    thinking_line_open: bool,
    /// Something else was printed after the text: the next text starts a new paragraph.
    paragraph_pending: bool,
    has_text: bool,
    /// The last piece ended in `\r`, which is printed with the next piece, because `\r\n` is a newline.
    pending_cr: bool,
}

impl TurnPrinter {
    /// Creates the printer for one turn.
    #[must_use]
    pub fn new(out: &Stdout, stderr: Stderr, stream: bool, thinking: bool) -> Self {
        let shared_terminal = out.is_terminal() && terminal::is_stderr_terminal();
        Self {
            stderr,
            show_notes: !out.is_quiet(),
            stream,
            thinking,
            shared_terminal,
            text_line_open: false,
            thinking_line_open: false,
            paragraph_pending: false,
            has_text: false,
            pending_cr: false,
        }
    }

    /// Prints one event of the turn.
    pub fn print_event(&mut self, out: &mut Stdout, said: &TurnEvent) -> Result<(), Error> {
        match said {
            TurnEvent::Text(text) if self.stream => self.print_text(out, text),
            TurnEvent::Thinking(text) if self.thinking => self.print_thinking(out, text),
            TurnEvent::Tool { name, .. } => {
                self.paragraph_pending = true;
                self.print_note(out, Style::Tool, &format!("→ {}", sanitize::one_line(name)))
            }
            TurnEvent::Result { name, is_error: true, .. } => {
                self.print_note(out, Style::Tool, &format!("✗ {} failed", sanitize::one_line(name)))
            }
            TurnEvent::Note(text) => self.print_note(out, Style::Faint, &sanitize::one_line(text)),
            TurnEvent::Queued { before, .. } if *before > 0 => {
                self.print_note(out, Style::Faint, &format!("queued: {} before it", pluralize(*before, "turn")))
            }
            _ => Ok(()),
        }
    }

    /// Ends the turn. Prints `reply` only if no text was streamed: without streaming, or if the daemon answered from an
    /// idempotency key.
    pub fn finish(&mut self, out: &mut Stdout, reply: &str) -> Result<(), Error> {
        if !self.has_text && !reply.is_empty() {
            self.print_text(out, reply)?;
        }
        if !self.has_text && reply.is_empty() {
            self.print_note(out, Style::Faint, "the model said nothing")?;
        }
        self.end_open_lines(out)
    }

    /// Ends the lines that are open.
    pub fn end_open_lines(&mut self, out: &mut Stdout) -> Result<(), Error> {
        self.end_thinking_line();
        if std::mem::take(&mut self.pending_cr) {
            out.text(&sanitize::multi_line("\r"))?;
        }
        self.end_line(out)
    }

    /// Prepares for other output on standard error: ends open lines and starts a new paragraph afterwards.
    pub fn interrupt_text(&mut self, out: &mut Stdout) -> Result<(), Error> {
        self.paragraph_pending = true;
        self.end_thinking_line();
        self.end_line_for_stderr(out)
    }

    fn print_text(&mut self, out: &mut Stdout, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.end_thinking_line();
        if std::mem::take(&mut self.paragraph_pending) && self.has_text {
            self.end_line(out)?;
            out.text("\n")?;
        }
        // Sanitize the model's text on a terminal, so that it cannot control it; a pipe or file gets it unchanged.
        if out.is_terminal() {
            let whole = if std::mem::take(&mut self.pending_cr) { format!("\r{text}") } else { text.to_owned() };
            let shown = whole.strip_suffix('\r').unwrap_or(&whole);
            self.pending_cr = shown.len() < whole.len();
            out.text(&sanitize::multi_line(shown))?;
        } else {
            out.text(text)?;
        }
        self.has_text = true;
        self.text_line_open = !text.ends_with('\n');
        out.flush()
    }

    fn print_thinking(&mut self, out: &mut Stdout, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.end_line_for_stderr(out)?;
        self.stderr.styled_part(Style::Faint, text);
        self.thinking_line_open = !text.ends_with('\n');
        Ok(())
    }

    fn print_note(&mut self, out: &mut Stdout, style: Style, line: &str) -> Result<(), Error> {
        if self.show_notes {
            self.end_thinking_line();
            self.end_line_for_stderr(out)?;
            self.stderr.styled_line(style, line);
        }
        Ok(())
    }

    /// Ends the open text line if standard error is the same terminal.
    fn end_line_for_stderr(&mut self, out: &mut Stdout) -> Result<(), Error> {
        if self.shared_terminal && self.text_line_open { self.end_line(out) } else { Ok(()) }
    }

    fn end_line(&mut self, out: &mut Stdout) -> Result<(), Error> {
        if std::mem::take(&mut self.text_line_open) {
            out.text("\n")?;
        }
        out.flush()
    }

    fn end_thinking_line(&mut self) {
        if std::mem::take(&mut self.thinking_line_open) {
            self.stderr.line("");
        }
    }
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::send::TurnEvent::{Text, Tool};

    use super::*;

    fn shown(width: Option<usize>, pieces: &[TurnEvent], reply: &str) -> Result<String, Error> {
        let mut out = Stdout::captured(width);
        let mut speech =
            TurnPrinter { show_notes: false, ..TurnPrinter::new(&out, Stderr::new(Default::default()), true, false) };
        for piece in pieces {
            speech.print_event(&mut out, piece)?;
        }
        speech.finish(&mut out, reply)?;
        Ok(out.captured_text().to_owned())
    }

    fn text(text: &str) -> TurnEvent {
        Text(text.to_owned())
    }

    #[test]
    fn a_reply_ends_with_one_line_end() -> Result<(), Error> {
        assert_eq!(shown(None, &[text("a"), text(""), text("b")], "ab")?, "ab\n");
        assert_eq!(shown(None, &[text("a\n")], "a\n")?, "a\n");
        assert_eq!(shown(None, &[], "whole")?, "whole\n");
        assert_eq!(shown(None, &[], "")?, "");
        Ok(())
    }

    #[test]
    fn what_comes_after_a_call_is_a_new_paragraph() -> Result<(), Error> {
        let call = || Tool { id: "c".into(), name: "list_models".into() };
        assert_eq!(
            shown(None, &[text("Let me look."), call(), call(), text("Two.")], "Two.")?,
            "Let me look.\n\nTwo.\n"
        );
        assert_eq!(shown(None, &[call(), text("Two.")], "Two.")?, "Two.\n");
        Ok(())
    }

    #[test]
    fn a_terminal_is_not_driven_and_a_pipe_has_what_was_said() -> Result<(), Error> {
        let pieces = [text("a\r"), text("\nb\x1b[2J\r"), text("c\r")];
        assert_eq!(shown(None, &pieces, "")?, "a\r\nb\x1b[2J\rc\r\n");
        assert_eq!(shown(Some(80), &pieces, "")?, "a\nb␛[2J␍c␍\n");
        Ok(())
    }
}
