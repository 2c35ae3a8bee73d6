//! `chorusctl memory search`: searches an agent's memory.

use chorus_proto::methods::memory::{DocPassage, Search, SearchParams};

use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::marked_text::MarkedText;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Stdout, Style, Table, TableArgs, sanitize, text};

/// Search an agent's memories and its notes in docs/
///
/// Finds the memories, and the passages of the files in docs/, that contain all words; upper and lower case are the same. If there are none, finds those
/// with at least half of the words. Whole words come first.
///
/// To search conversations, use chorusctl search.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Words to find
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// Maximum number of entries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    table: TableArgs,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let table = Table::with_args(super::COLUMNS, &args.table, app.stdout.format())?;
    let params = SearchParams { agent: app.agent(), query: args.query.join(" "), limit: args.limit };
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<Search>(&params)?;
        print_pages::print_entries(&mut app.stdout, &raw, "entries")?;
        return print_pages::print_entries_if_any(&mut app.stdout, &raw, "docs");
    }
    app.call_and_print::<Search>(&params, |app, result| {
        if result.entries.is_empty() && result.docs.is_empty() {
            app.stderr.line("no memory or note has these words; to search conversations: chorusctl search WORD");
            return Ok(());
        }
        if !result.entries.is_empty() {
            super::write_table(table, &result.entries, &mut app.stdout)?;
        }
        for passage in &result.docs {
            write_passage(passage, &mut app.stdout)?;
        }
        app.stdout.flush()?;
        if result.partial {
            app.stderr.line("nothing has all these words; showing what has some of them");
        }
        let shown = result.entries.len() as u64;
        if shown < result.total {
            app.stderr.line(&format!("showing {shown} of {} memories that match", result.total));
        }
        Ok(())
    })
}

/// Writes a passage on one line, behind its place.
fn write_passage(passage: &DocPassage, out: &mut Stdout) -> Result<(), Error> {
    let place = format!("{}:{}", sanitize::one_line(&passage.path), passage.line);
    let width = out.width().map(|width| width.saturating_sub(text::width(&place) + 2).max(1));
    let lines = MarkedText::new(&passage.snippet, &passage.marks).lines(width, 1, out.styler());
    writeln!(out, "{}  {}", out.style(Style::Id, &place), lines.first().map_or("", String::as_str))
}
