//! Renders Markdown for a terminal: wrapped at words, with headings, lists, tables and code set apart.
//!
//! The text must be sanitized before; the renderer adds the only escape sequences.

use std::mem;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::style::{Style, Styler};
use super::styled_words::{Emphasis, StyledWords};
use super::text;

/// Renders `markdown` in lines of at most `width` columns, each with a newline. Code is not wrapped.
#[must_use]
pub fn render(markdown: &str, width: usize, paint: Styler) -> String {
    let mut renderer = Renderer::new(width.max(20), paint);
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        renderer.event(event);
    }
    renderer.flush_words();
    renderer.output
}

/// A list that is open.
#[derive(Debug)]
struct List {
    /// The number of the next item; `None` for bullets.
    next: Option<u64>,
}

/// A table that is being read.
#[derive(Debug, Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
struct Renderer {
    width: usize,
    paint: Styler,
    output: String,
    /// The words of the paragraph, heading or item that is being read.
    words: StyledWords,
    emphasis: Emphasis,
    lists: Vec<List>,
    /// The text before the first line of what follows: a bullet or number.
    marker: String,
    /// The text before every line: that of quotes and of the items around.
    indents: Vec<String>,
    /// The destination of the link that is open, and the text of the link so far.
    link: Option<(String, String)>,
    code_block: Option<String>,
    table: Option<Table>,
    cell: String,
    /// True if a blank line separates the next block from the one before.
    needs_gap: bool,
}

impl Renderer {
    fn new(width: usize, paint: Styler) -> Self {
        Self {
            width,
            paint,
            output: String::new(),
            words: StyledWords::default(),
            emphasis: Emphasis::default(),
            lists: Vec::new(),
            marker: String::new(),
            indents: Vec::new(),
            link: None,
            code_block: None,
            table: None,
            cell: String::new(),
            needs_gap: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => {
                let emphasis = Emphasis { code: true, ..self.emphasis };
                self.push_words(&code, emphasis);
            }
            Event::SoftBreak => self.push_words(" ", self.emphasis),
            Event::HardBreak => self.words.push_line_break(),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.width.saturating_sub(self.indent_width()));
                let rule = self.paint.style(Style::Faint, &rule).to_string();
                self.push_line(&rule);
                self.needs_gap = true;
            }
            Event::TaskListMarker(done) => self.push_words(if done { "[x] " } else { "[ ] " }, self.emphasis),
            Event::FootnoteReference(name) => self.push_words(&format!("[{name}]"), self.emphasis),
            Event::InlineMath(math) | Event::DisplayMath(math) => self.push_words(&math, self.emphasis),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.begin_block();
                self.emphasis.bold = true;
            }
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.indents.push("│ ".to_owned());
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                // A diff keeps its colours, everything else has the one of code.
                self.code_block = Some(language);
            }
            Tag::List(next) => {
                if self.lists.is_empty() {
                    self.begin_block();
                } else {
                    self.flush_words();
                }
                self.lists.push(List { next });
            }
            Tag::Item => {
                self.flush_words();
                self.marker = match self.lists.last_mut().and_then(|list| list.next.as_mut()) {
                    Some(number) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    None => "• ".to_owned(),
                };
                self.needs_gap = false;
                self.indents.push(" ".repeat(text::width(&self.marker)));
            }
            Tag::Emphasis => self.emphasis.italic = true,
            Tag::Strong => self.emphasis.bold = true,
            Tag::Strikethrough => self.emphasis.struck = true,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.into_string(), String::new()));
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.flush_words();
                self.emphasis.bold = false;
                self.needs_gap = true;
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush_words();
                self.needs_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush_words();
                self.indents.pop();
                self.needs_gap = true;
            }
            TagEnd::CodeBlock => {
                self.code_block = None;
                self.needs_gap = true;
            }
            TagEnd::List(_) => {
                self.flush_words();
                self.lists.pop();
                self.needs_gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush_words();
                self.indents.pop();
                self.marker.clear();
                self.needs_gap = false;
            }
            TagEnd::Emphasis => self.emphasis.italic = false,
            TagEnd::Strong => self.emphasis.bold = false,
            TagEnd::Strikethrough => self.emphasis.struck = false,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = mem::take(&mut self.cell);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.write_table(&table);
                }
                self.needs_gap = true;
            }
            _ => {}
        }
    }

    /// Writes the address of a link behind its text, unless they are the same.
    fn end_link(&mut self) {
        let Some((address, label)) = self.link.take() else { return };
        let bare = address.strip_prefix("mailto:").unwrap_or(&address);
        if !bare.is_empty() && bare != label {
            let emphasis = Emphasis { faint: true, ..Emphasis::default() };
            self.push_words(&format!(" ({address})"), emphasis);
        }
    }

    fn text(&mut self, text: &str) {
        if self.code_block.is_some() {
            return self.write_code(text);
        }
        if let Some((_, label)) = &mut self.link {
            label.push_str(text);
        }
        self.push_words(text, self.emphasis);
    }

    fn push_words(&mut self, text: &str, emphasis: Emphasis) {
        if self.table.is_some() { self.cell.push_str(text) } else { self.words.push(text, emphasis) }
    }

    /// Ends what came before and leaves a blank line.
    fn begin_block(&mut self) {
        self.flush_words();
        if mem::take(&mut self.needs_gap) && !self.output.is_empty() {
            let indent = self.indents.concat();
            self.output.push_str(indent.trim_end());
            self.output.push('\n');
        }
    }

    fn indent_width(&self) -> usize {
        self.indents.iter().map(|indent| text::width(indent)).sum()
    }

    /// Writes the words that were read as wrapped lines.
    fn flush_words(&mut self) {
        let words = mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        let width = self.width.saturating_sub(self.indent_width()).max(10);
        for line in words.wrap(width, self.paint) {
            self.push_line(&line);
        }
    }

    fn write_code(&mut self, code: &str) {
        let is_diff = self.code_block.as_deref() == Some("diff");
        for line in code.lines() {
            if line.trim().is_empty() {
                self.push_line("");
                continue;
            }
            let style = match line.as_bytes().first() {
                Some(b'+') if is_diff => Style::Good,
                Some(b'-') if is_diff => Style::Bad,
                _ => Style::Id,
            };
            let line = self.paint.style(style, line).to_string();
            self.push_line(&format!("  {line}"));
        }
    }

    /// Writes one line behind the marker and the indentation.
    fn push_line(&mut self, line: &str) {
        let marker = mem::take(&mut self.marker);
        let mut start = self.indents.concat();
        if !marker.is_empty() {
            // The innermost indentation is as wide as the marker.
            let outer = start.len() - self.indents.last().map_or(0, String::len);
            start.truncate(outer);
            start.push_str(&marker);
        }
        self.output.push_str(start.trim_end_matches(|c| line.is_empty() && c == ' '));
        self.output.push_str(line);
        self.output.push('\n');
    }

    /// Writes a table with columns of equal width; rows that are too wide are cut at the end of the terminal.
    fn write_table(&mut self, table: &Table) {
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| table.rows.iter().filter_map(|row| row.get(column)).map(|cell| text::width(cell)).max())
            .map(Option::unwrap_or_default)
            .collect();
        let room = self.width.saturating_sub(self.indent_width());
        for (index, row) in table.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let right = matches!(table.alignments.get(column), Some(Alignment::Right));
                text::pad(&mut line, cell, widths[column], right);
                line.push_str("  ");
            }
            let line = text::truncate(line.trim_end(), room).into_owned();
            if index == 0 {
                let head = self.paint.style(Style::Strong, &line).to_string();
                self.push_line(&head);
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let rule = text::truncate(&rule.join("  "), room).into_owned();
                let rule = self.paint.style(Style::Faint, &rule).to_string();
                self.push_line(&rule);
            } else {
                self.push_line(&line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(markdown: &str, width: usize) -> String {
        render(markdown, width, Styler { enabled: false })
    }

    #[test]
    fn paragraphs_are_wrapped_at_words() {
        assert_eq!(plain("The quick brown\nfox jumps.\n\nNext.", 20), "The quick brown fox\njumps.\n\nNext.\n");
        assert_eq!(plain("line one  \nline two", 40), "line one\nline two\n");
    }

    #[test]
    fn lists_keep_their_numbers_and_hang() {
        let list = "Steps:\n\n3. one two three four\n4. five\n   - a\n   - b\n\nDone.";
        assert_eq!(plain(list, 20), "Steps:\n\n3. one two three\n   four\n4. five\n   • a\n   • b\n\nDone.\n");
    }

    #[test]
    fn code_is_indented_and_never_wrapped() {
        let code = "Run:\n\n```sh\ncargo test --workspace --no-fail-fast\n\nls\n```\nThen `wait`.";
        assert_eq!(plain(code, 20), "Run:\n\n  cargo test --workspace --no-fail-fast\n\n  ls\n\nThen wait.\n");
    }

    #[test]
    fn quotes_tables_links_and_rules_are_set_apart() {
        assert_eq!(plain("> said\n> so", 20), "│ said so\n");
        let table = "| a | num |\n|---|---:|\n| xx | 1 |\n| y | 10 |";
        assert_eq!(plain(table, 40), "a   num\n──  ───\nxx    1\ny    10\n");
        assert_eq!(plain("See [the page](https://a.example).", 60), "See the page (https://a.example).\n");
        assert_eq!(plain("<https://a.example>", 60), "https://a.example\n");
        assert_eq!(plain("a\n\n---\n\nb", 20), format!("a\n\n{}\n\nb\n", "─".repeat(20)));
    }

    #[test]
    fn emphasis_is_shown_by_style_only_where_there_is_colour() {
        let colored = render("a **b** `c`", 40, Styler { enabled: true });
        assert_eq!(colored, "a \x1b[1mb\x1b[0m \x1b[36mc\x1b[0m\n");
        assert_eq!(plain("a **b** `c` *d*", 40), "a b c d\n");
    }
}
