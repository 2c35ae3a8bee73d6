//! Prints a turn while it runs: the reply's text on standard output, everything else on standard error.

use std::time::{Duration, Instant};

use chorus_proto::methods::send::TurnEvent;
use chorus_proto::{Usage, tool_gist};

use super::reply_renderer::ReplyRenderer;
use super::{tool_lines, turn};
use crate::error::Error;
use crate::ui::spinner::Spinner;
use crate::ui::units::{self, pluralize};
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
    /// Renders the reply on a terminal.
    renderer: Option<ReplyRenderer>,
    spinner: Option<Spinner>,
    /// Command that shows a message by its number.
    show_command: &'static str,
    started: Instant,
    /// Bytes that the model has written.
    output_bytes: u64,
    /// The text of the last reply of the model, as far as it was printed.
    reply: String,
    lost_line: LostLine,
}

/// The line to the daemon was lost in the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostLine {
    No,
    /// Nothing has come since.
    Now,
    /// Something has come since.
    Earlier,
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
            renderer: out.is_terminal().then(ReplyRenderer::default),
            spinner: None,
            show_command: turn::SHOW_COMMAND,
            started: Instant::now(),
            output_bytes: 0,
            reply: String::new(),
            lost_line: LostLine::No,
        }
    }

    /// Names this command where an output is folded.
    #[must_use]
    pub fn with_show_command(self, show_command: &'static str) -> Self {
        Self { show_command, ..self }
    }

    /// Returns true if the model has written text or called a tool.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.output_bytes > 0 || self.paragraph_pending
    }

    /// Shows a spinner while the turn runs and prints nothing.
    #[must_use]
    pub fn with_spinner(self) -> Self {
        let spinner = Spinner::new(self.show_notes);
        if let Some(spinner) = &spinner {
            spinner.show("waiting");
        }
        Self { spinner, ..self }
    }

    /// Prints one event of the turn.
    pub fn print_event(&mut self, out: &mut Stdout, event: &TurnEvent) -> Result<(), Error> {
        let width = note_width();
        match event {
            TurnEvent::Text(text) if self.stream => {
                self.note_gap(out)?;
                self.reply.push_str(text);
                self.count_output(text);
                self.print_text(out, text)
            }
            TurnEvent::Text(text) => {
                self.count_output(text);
                self.spin("writing");
                Ok(())
            }
            TurnEvent::Thinking(text) => {
                self.count_output(text);
                if self.thinking {
                    return self.print_thinking(out, text);
                }
                self.spin("thinking");
                Ok(())
            }
            TurnEvent::Tool { name, gist, .. } => {
                self.note_gap(out)?;
                self.reply.clear();
                self.paragraph_pending = true;
                self.print_quoted(out, Style::Tool, &tool_lines::call_line(name, gist.as_deref(), width))?;
                self.spin(tool_gist::display_name(name));
                Ok(())
            }
            TurnEvent::Result { name, is_error, output, message, .. } => {
                let show = message.map(|number| format!("{} {number}", self.show_command));
                let show = self.stderr.name_commands(show.as_deref().unwrap_or("chorusctl show"));
                for (style, line) in tool_lines::result_lines(name, *is_error, output.as_deref(), (width, &show)) {
                    self.print_quoted(out, style, &line)?;
                }
                self.spin("waiting for the model");
                Ok(())
            }
            TurnEvent::Note(text) => self.print_note(out, Style::Faint, &sanitize::one_line(text)),
            TurnEvent::Queued { before, .. } if *before > 0 => {
                let messages = pluralize(*before, "earlier message");
                self.print_note(out, Style::Faint, &format!("waiting for {messages}"))
            }
            TurnEvent::Started { .. } => {
                self.spin("waiting for the model");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends the turn. Prints `reply` only if no text was streamed: without streaming, or if the daemon answered from an
    /// idempotency key. On a terminal then prints what the turn used.
    pub fn finish(&mut self, out: &mut Stdout, reply: &str, usage: &Usage) -> Result<(), Error> {
        if !self.has_text && !reply.is_empty() {
            self.print_text(out, reply)?;
        } else if self.lost_line != LostLine::No {
            self.print_rest(out, reply)?;
        }
        if !self.has_text && reply.is_empty() {
            self.print_note(out, Style::Faint, "(empty reply)")?;
        }
        self.end_open_lines(out)?;
        if self.shared_terminal
            && let Some(line) =
                usage_line(usage, usage.duration_ms.map_or(self.started.elapsed(), Duration::from_millis))
        {
            self.print_note(out, Style::Faint, &line)?;
        }
        self.spinner = None;
        Ok(())
    }

    /// Notes that the line to the daemon was lost: what comes next begins with another reply of the model, or the whole one.
    pub fn note_lost_line(&mut self, out: &mut Stdout) -> Result<(), Error> {
        self.lost_line = LostLine::Now;
        self.hide_spinner();
        self.end_line_for_stderr(out)
    }

    /// Says that something may be missing, if the line was lost in an earlier reply of the model.
    fn note_gap(&mut self, out: &mut Stdout) -> Result<(), Error> {
        if self.lost_line != LostLine::Now {
            return Ok(());
        }
        self.lost_line = LostLine::Earlier;
        self.reply.clear();
        self.paragraph_pending = true;
        let line =
            format!("the end of the reply before is missing here: {}", self.stderr.name_commands("chorusctl show"));
        self.print_note(out, Style::Faint, &line)
    }

    /// Prints what is missing of the last reply.
    fn print_rest(&mut self, out: &mut Stdout, reply: &str) -> Result<(), Error> {
        let shown = std::mem::take(&mut self.reply);
        if let Some(rest) = reply.strip_prefix(shown.as_str()) {
            let rest = rest.to_owned();
            return self.print_text(out, &rest);
        }
        if reply.trim() == shown.trim() {
            return Ok(());
        }
        self.paragraph_pending = true;
        self.print_text(out, reply)
    }

    /// Ends the lines that are open.
    pub fn end_open_lines(&mut self, out: &mut Stdout) -> Result<(), Error> {
        self.hide_spinner();
        self.end_thinking_line();
        self.flush_markdown(out)?;
        self.end_line(out)
    }

    /// Prepares for other output on standard error: ends open lines and starts a new paragraph afterwards.
    pub fn interrupt_text(&mut self, out: &mut Stdout) -> Result<(), Error> {
        self.paragraph_pending = true;
        self.hide_spinner();
        self.end_thinking_line();
        self.flush_markdown(out)?;
        self.end_line_for_stderr(out)
    }

    fn print_text(&mut self, out: &mut Stdout, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.end_thinking_line();
        let new_paragraph = std::mem::take(&mut self.paragraph_pending) && self.has_text;
        self.has_text = true;
        // A terminal gets the text rendered; a pipe or file gets it unchanged.
        if let Some(renderer) = &mut self.renderer {
            if new_paragraph {
                renderer.finish(out, self.spinner.as_ref())?;
            }
            return renderer.push(out, text, self.spinner.as_ref());
        }
        if new_paragraph {
            self.end_line(out)?;
            out.text("\n")?;
        }
        out.text(text)?;
        self.text_line_open = !text.ends_with('\n');
        out.flush()
    }

    /// Renders what is left of the text.
    fn flush_markdown(&mut self, out: &mut Stdout) -> Result<(), Error> {
        self.renderer.as_mut().map_or(Ok(()), |renderer| renderer.finish(out, self.spinner.as_ref()))
    }

    fn print_thinking(&mut self, out: &mut Stdout, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.hide_spinner();
        self.flush_markdown(out)?;
        self.end_line_for_stderr(out)?;
        self.stderr.styled_part(Style::Faint, text);
        self.thinking_line_open = !text.ends_with('\n');
        Ok(())
    }

    /// Prints a sentence of Chorus.
    fn print_note(&mut self, out: &mut Stdout, style: Style, line: &str) -> Result<(), Error> {
        if self.show_notes {
            self.begin_note(out)?;
            self.stderr.styled_line(style, line);
        }
        Ok(())
    }

    /// Prints text of a model or a tool as it is.
    fn print_quoted(&mut self, out: &mut Stdout, style: Style, line: &str) -> Result<(), Error> {
        if self.show_notes {
            self.begin_note(out)?;
            self.stderr.quoted_line(style, line);
        }
        Ok(())
    }

    fn begin_note(&mut self, out: &mut Stdout) -> Result<(), Error> {
        self.hide_spinner();
        self.end_thinking_line();
        self.flush_markdown(out)?;
        self.end_line_for_stderr(out)
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

    /// Shows the spinner with this label, unless a line is open.
    fn spin(&self, label: &str) {
        if let Some(spinner) = &self.spinner
            && !self.text_line_open
            && !self.thinking_line_open
        {
            spinner.set_tokens(self.output_bytes.div_ceil(4));
            spinner.show(label);
        }
    }

    fn hide_spinner(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.hide();
        }
    }

    fn count_output(&mut self, text: &str) {
        self.output_bytes += text.len() as u64;
    }

    fn end_thinking_line(&mut self) {
        if std::mem::take(&mut self.thinking_line_open) {
            self.stderr.line("");
        }
    }
}

/// Returns the width of notes on standard error.
fn note_width() -> usize {
    if terminal::is_stderr_terminal() { terminal::columns(std::io::stderr()) } else { usize::MAX }
}

/// Formats what a turn used: `1.2k tokens in, 340 out · $0.0123 · 4.2 s`. `None` if nothing is known.
fn usage_line(usage: &Usage, elapsed: Duration) -> Option<String> {
    let (input, output) = (usage.input_tokens?, usage.output_tokens?);
    let cost = usage.cost_usd.map(|cost| format!(" · {}", units::format_dollars(cost))).unwrap_or_default();
    let (input, output) = (units::format_tokens(input), units::format_tokens(output));
    Some(format!("{input} tokens in, {output} out{cost} · {:.1} s", elapsed.as_secs_f64()))
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
        speech.finish(&mut out, reply, &Usage::default())?;
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
        let call = || Tool { id: "c".into(), name: "list_models".into(), gist: None };
        assert_eq!(
            shown(None, &[text("Let me look."), call(), call(), text("Two.")], "Two.")?,
            "Let me look.\n\nTwo.\n"
        );
        assert_eq!(shown(None, &[call(), text("Two.")], "Two.")?, "Two.\n");
        Ok(())
    }

    #[test]
    fn a_reply_is_completed_after_the_line_was_lost() -> Result<(), Error> {
        let shown = |before: &[TurnEvent], after: &[TurnEvent], reply: &str| {
            let mut out = Stdout::captured(None);
            let stderr = Stderr::new(Default::default());
            let mut speech = TurnPrinter { show_notes: false, ..TurnPrinter::new(&out, stderr, true, false) };
            before.iter().try_for_each(|piece| speech.print_event(&mut out, piece))?;
            speech.note_lost_line(&mut out)?;
            after.iter().try_for_each(|piece| speech.print_event(&mut out, piece))?;
            speech.finish(&mut out, reply, &Usage::default())?;
            Ok::<_, Error>(out.captured_text().to_owned())
        };
        let call = || Tool { id: "c".into(), name: "list_models".into(), gist: None };
        assert_eq!(shown(&[text("One, ")], &[], "One, two.")?, "One, two.\n");
        assert_eq!(shown(&[text("One, two.")], &[], "One, two.")?, "One, two.\n");
        assert_eq!(shown(&[], &[], "One, two.")?, "One, two.\n");
        assert_eq!(shown(&[text("Look."), call()], &[], "Two.")?, "Look.\n\nTwo.\n");
        assert_eq!(shown(&[text("Look."), call()], &[text("Tw"), text("o.")], "Two.")?, "Look.\n\nTwo.\n");
        // The line was lost in the text before a call, and the reply came without it.
        assert_eq!(shown(&[text("Let me lo")], &[], "Two.")?, "Let me lo\n\nTwo.\n");
        Ok(())
    }

    #[test]
    fn a_terminal_is_not_driven_and_a_pipe_has_what_was_said() -> Result<(), Error> {
        let pieces = [text("a\r"), text("\nb\x1b[2J\r"), text("c\r")];
        assert_eq!(shown(None, &pieces, "")?, "a\r\nb\x1b[2J\rc\r\n");
        assert_eq!(shown(Some(80), &pieces, "")?, "a b␛[2J␍c␍\n");
        Ok(())
    }

    #[test]
    fn a_terminal_has_markdown_rendered_block_by_block() -> Result<(), Error> {
        let pieces = [text("# Ti"), text("tle\n\nSome *text* that is long"), text(" enough.\n\n- one\n- two")];
        assert_eq!(shown(Some(20), &pieces, "")?, "Title\n\nSome text that is\nlong enough.\n\n• one\n• two\n");
        let call = || Tool { id: "c".into(), name: "bash".into(), gist: None };
        assert_eq!(shown(Some(20), &[text("Look:"), call(), text("Done.")], "")?, "Look:\n\nDone.\n");
        Ok(())
    }

    #[test]
    fn what_a_turn_used_is_one_line() {
        let usage =
            Usage { input_tokens: Some(1234), output_tokens: Some(56), cost_usd: Some(0.0123), ..Usage::default() };
        let line = usage_line(&usage, Duration::from_millis(4250));
        assert_eq!(line.as_deref(), Some("~1.2k tokens in, 56 out · $0.0123 · 4.2 s"));
        assert_eq!(usage_line(&Usage::default(), Duration::ZERO), None);
    }
}
