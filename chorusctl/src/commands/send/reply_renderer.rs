//! Prints a reply on a terminal while it arrives: its Markdown rendered, each line as soon as it does not change any more.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::ui::markdown_stream::MarkdownStream;
use crate::ui::spinner::Spinner;
use crate::ui::{Stdout, sanitize};

/// Longer lines are hard to read on a wide terminal.
const MAX_WIDTH: usize = 100;

/// The shortest time between two renderings of a block that is not complete.
const RENDER_INTERVAL: Duration = Duration::from_millis(60);

/// Prints one reply.
#[derive(Debug, Default)]
pub(super) struct ReplyRenderer {
    stream: MarkdownStream,
    /// The lines of the current block that were printed.
    printed_lines: Vec<String>,
    /// A line of the current block was printed.
    block_begun: bool,
    /// A line of the reply was printed.
    reply_begun: bool,
    /// The pending block is not rendered before this time.
    next_render: Option<Instant>,
}

impl ReplyRenderer {
    /// Takes the next text of the reply. `spinner` shows the end of what is not printed yet.
    pub(super) fn push(&mut self, out: &mut Stdout, text: &str, spinner: Option<&Spinner>) -> Result<(), Error> {
        if let Some(blocks) = self.stream.push(text) {
            self.print_blocks(out, &blocks, spinner)?;
        }
        let now = Instant::now();
        if self.stream.is_empty() || self.next_render.is_some_and(|next| now < next) {
            return Ok(());
        }
        self.next_render = Some(now + RENDER_INTERVAL);
        let mut stable = render(out, self.stream.stable_prefix());
        // The last line may still grow, and a blank one belongs to what comes after it.
        stable.pop();
        stable.truncate(stable.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
        self.print_lines(out, &stable, spinner)?;
        if let Some(spinner) = spinner {
            let pending = render(out, self.stream.pending());
            let rest = pending.get(self.printed_lines.len()..).unwrap_or_default();
            spinner.show_text(&strip_styles(&rest.join(" ")));
        }
        Ok(())
    }

    /// Prints what is left of the text; what comes next is a block of its own.
    pub(super) fn finish(&mut self, out: &mut Stdout, spinner: Option<&Spinner>) -> Result<(), Error> {
        let rest = self.stream.finish();
        if rest.trim().is_empty() { Ok(()) } else { self.print_blocks(out, &rest, spinner) }
    }

    /// Prints complete blocks, without the lines of them that were printed already.
    fn print_blocks(&mut self, out: &mut Stdout, markdown: &str, spinner: Option<&Spinner>) -> Result<(), Error> {
        let lines = render(out, markdown);
        self.print_lines(out, &lines, spinner)?;
        // Lines of the next block may be printed already, behind a blank one.
        self.printed_lines.drain(..lines.len().min(self.printed_lines.len()));
        if self.printed_lines.first().is_some_and(String::is_empty) {
            self.printed_lines.remove(0);
        }
        self.block_begun = !self.printed_lines.is_empty();
        Ok(())
    }

    /// Prints the lines of the current block that were not printed yet, with a blank line before the block if it is not
    /// the first.
    fn print_lines(&mut self, out: &mut Stdout, lines: &[String], spinner: Option<&Spinner>) -> Result<(), Error> {
        let same = self.printed_lines.iter().zip(lines).take_while(|(printed, line)| printed == line).count();
        let Some(rest) = lines.get(same..).filter(|rest| !rest.is_empty()) else { return Ok(()) };
        if let Some(spinner) = spinner {
            spinner.hide();
        }
        if !std::mem::replace(&mut self.block_begun, true) && self.reply_begun {
            out.text("\n")?;
        }
        self.reply_begun = true;
        for line in rest {
            writeln!(out, "{line}")?;
        }
        self.printed_lines.truncate(same);
        self.printed_lines.extend_from_slice(rest);
        out.flush()
    }
}

/// Renders Markdown in lines for the terminal.
fn render(out: &Stdout, markdown: &str) -> Vec<String> {
    let width = out.width().map_or(MAX_WIDTH, |width| width.min(MAX_WIDTH));
    out.markdown(&sanitize::multi_line(markdown), width).lines().map(str::to_owned).collect()
}

/// Removes the escape sequences of styles.
fn strip_styles(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints `text` in pieces of `size` bytes, each as if time had passed.
    fn printed(text: &str, size: usize) -> Result<(String, String), Error> {
        let mut out = Stdout::captured(Some(20));
        let mut renderer = ReplyRenderer::default();
        let mut before_end = String::new();
        for piece in text.as_bytes().chunks(size) {
            renderer.next_render = None;
            renderer.push(&mut out, std::str::from_utf8(piece).unwrap_or_default(), None)?;
            before_end = out.captured_text().to_owned();
        }
        renderer.finish(&mut out, None)?;
        Ok((before_end, out.captured_text().to_owned()))
    }

    #[test]
    fn however_it_arrives_the_result_is_the_same() -> Result<(), Error> {
        let text = "# Title\n\nSome **bold words that are** long enough to wrap, with `code and more` in it.\n\n\
                    1. first item that is long\n2. second\n\n```\nlet a = 1;\n\nlet b = 2;\n```\n\n| a | b |\n|---|---|\n\
                    | 1 | 2 |\n\nDone.";
        let (_, whole) = printed(text, text.len())?;
        for size in [1, 2, 3, 7, 20] {
            assert_eq!(printed(text, size)?.1, whole, "in pieces of {size}");
        }
        Ok(())
    }

    #[test]
    fn lines_are_printed_before_the_block_is_complete() -> Result<(), Error> {
        let (before_end, _) = printed("one two three four five six seven eight", 1)?;
        assert_eq!(before_end, "one two three four\n");
        let (before_end, _) = printed("```\nlet a = 1;\nlet b = 2;\nlet c", 1)?;
        assert_eq!(before_end, "  let a = 1;\n");
        Ok(())
    }
}
