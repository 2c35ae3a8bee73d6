//! `chorusctl memory search`: searches an agent's memory.

use chorus_proto::methods::memory::{Search, SearchParams};

use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;

/// Search an agent's memories
///
/// All words must occur in the text or path; upper and lower case are the same. Entries that contain them as whole words come first.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Words to find
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// Maximum number of entries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = SearchParams { agent: app.agent(), query: args.query.join(" "), limit: args.limit };
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<Search>(&params)?;
        return print_pages::print_entries(&mut app.stdout, &raw, "entries");
    }
    app.call_and_print::<Search>(&params, |app, result| {
        if result.entries.is_empty() {
            app.stderr.line("no memory matches all these words");
            return Ok(());
        }
        super::write_table(&result.entries, &mut app.stdout)?;
        app.stdout.flush()?;
        let told = result.entries.len() as u64;
        if told < result.total {
            app.stderr.line(&format!("showing {told} of {} matches", result.total));
        }
        Ok(())
    })
}
