//! What a terminal shows after a command has ended, as text or as a picture.

use std::fmt::Write as _;
use std::num::NonZero;
use std::process::Command;

use vt100::{Cell, Color, Parser};

use crate::interactive::InteractiveCommand;

/// Rows that are kept, however few the command sees: what scrolled away is shown too.
const ROWS: u16 = 1000;

/// The last state of a terminal.
pub struct Screen {
    /// Exit status of the command; -1 if a signal ended it.
    pub status: i32,
    /// The text of a screen of the command's own, before it was left.
    full_screen: String,
    parser: Parser,
    columns: u16,
}

/// Leaves a screen of the command's own.
const LEAVE_FULL_SCREEN: &str = "\u{1b}[?1049l";

/// Returns the rows that a terminal shows after `output`, without spaces at their ends.
#[must_use]
pub fn rows_of(output: &str, columns: u16, rows: u16) -> Vec<String> {
    let mut parser = parser(columns, rows);
    parser.process(output.as_bytes());
    parser.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("status", &self.status).field("text", &self.text()).finish_non_exhaustive()
    }
}

impl Screen {
    /// Runs `command` to its end on a terminal of this size, which types the second of each pair once
    /// the first was shown. `clean` may change what the command
    /// wrote before it is shown, for example paths of a test.
    #[must_use]
    pub fn of(
        command: &Command,
        columns: u16,
        rows: u16,
        typed: &[(&str, &str)],
        clean: impl Fn(&str) -> String,
    ) -> Self {
        let mut running = InteractiveCommand::on_terminal_of(command, columns, rows);
        let mut seen = 0;
        for (shown, text) in typed {
            running.stdout.wait_for_after(seen, shown);
            let at = running.stdout.text().get(seen..).and_then(|rest| rest.find(shown)).unwrap_or_default();
            seen += at + shown.len();
            running.type_text(text);
        }
        let (status, shown, _) = running.wait_for_exit();
        let mut screen = Self {
            status: status.code().unwrap_or(-1),
            full_screen: String::new(),
            parser: parser(columns, ROWS),
            columns,
        };
        for piece in clean(&shown).split_inclusive(LEAVE_FULL_SCREEN) {
            if let Some(before) = piece.strip_suffix(LEAVE_FULL_SCREEN) {
                screen.parser.process(before.as_bytes());
                screen.full_screen = screen.last_text();
                screen.full_screen.push('\n');
            }
            screen.parser.process(piece.as_bytes());
        }
        screen
    }

    /// Its rows without spaces at their ends, and without empty rows at the end; before them those of a screen of the command's
    /// own.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.full_screen, self.last_text()).trim_end().to_owned()
    }

    fn last_text(&self) -> String {
        let rows: Vec<String> =
            self.parser.screen().rows(0, self.columns).map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Draws rows `from` to `to` (exclusive) as an SVG image with `title`, without scripts and fonts of its own.
    #[must_use]
    pub fn svg(&self, title: &str, from: u16, to: u16) -> String {
        const WIDTH: f32 = 8.4;
        const HEIGHT: u16 = 19;
        const MARGIN: u16 = 16;
        let (across, down) =
            (f32::from(self.columns) * WIDTH + f32::from(MARGIN) * 2.0, (to - from) * HEIGHT + MARGIN * 2 + 20);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {across:.0} {down}\" role=\"img\">\n\
             <title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n",
            escape(title)
        );
        for (at, color) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
            _ = writeln!(svg, "<circle cx=\"{}\" cy=\"16\" r=\"5\" fill=\"{color}\"/>", 20 + at * 16);
        }
        svg.push_str(
            "<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" \
             font-size=\"14\" xml:space=\"preserve\">\n",
        );
        for row in from..to {
            let baseline = (row - from) * HEIGHT + MARGIN + 20 + 14;
            for (column, text, style) in self.runs(row) {
                let x = f32::from(MARGIN) + f32::from(column) * WIDTH;
                let width = text.chars().count() as f32 * WIDTH;
                _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{baseline}\" textLength=\"{width:.1}\"{style}>{}</text>",
                    escape(&text)
                );
            }
        }
        svg.push_str("</g>\n</svg>\n");
        svg
    }

    /// The pieces of a row with the same style: first column, text, attributes.
    fn runs(&self, row: u16) -> Vec<(u16, String, String)> {
        let mut runs: Vec<(u16, String, String)> = Vec::new();
        for column in 0..self.columns {
            let Some(cell) = self.parser.screen().cell(row, column) else { continue };
            let style = attributes(cell);
            let text = if cell.has_contents() { cell.contents() } else { " " };
            match runs.last_mut() {
                Some((_, run, of)) if *of == style => run.push_str(text),
                _ => runs.push((column, text.to_owned(), style)),
            }
        }
        runs.retain_mut(|(_, text, _)| {
            text.truncate(text.trim_end().len());
            !text.is_empty()
        });
        runs
    }
}

fn parser(columns: u16, rows: u16) -> Parser {
    let size = |number| NonZero::new(number).expect("a size");
    Parser::new(size(rows), size(columns), 0)
}

fn attributes(cell: &Cell) -> String {
    const PALETTE: [&str; 16] = [
        "#16181d", "#f07178", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#d5d8e0", "#6b7280", "#ff8b92",
        "#b9f27c", "#ffd58a", "#9db8ff", "#d2b6ff", "#a4e4ff", "#ffffff",
    ];
    let fill = match cell.fgcolor() {
        Color::Idx(at) => PALETTE.get(usize::from(at)).copied().unwrap_or("#d5d8e0").to_owned(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Default => "#d5d8e0".to_owned(),
    };
    let mut style = format!(" fill=\"{fill}\"");
    if cell.bold() {
        style.push_str(" font-weight=\"bold\"");
    }
    if cell.dim() {
        style.push_str(" opacity=\"0.6\"");
    }
    if cell.underline() {
        style.push_str(" text-decoration=\"underline\"");
    }
    style
}

/// Escapes text; spaces at its ends would be dropped if they were ordinary ones.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', "\u{a0}")
}
