//! `chorusctl memory search`.

use chorus_proto::methods::memory::{Search, SearchParams};

use crate::app::App;
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;

/// Find words in what an agent remembers
///
/// All the words must occur in its text or path, in any case; entries that have them as whole words come first.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The words
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// Searches.
///
/// # Errors
/// Why nothing could be searched.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = SearchParams { agent: app.agent(), query: args.query.join(" "), limit: args.limit };
    if app.out.format() == Format::Jsonl {
        let raw = app.call_raw::<Search>(&params)?;
        return reply::lines(&mut app.out, &raw, "entries");
    }
    app.answer::<Search>(&params, |app, result| {
        if result.entries.is_empty() {
            app.notes.line("nothing that is remembered has all these words in it");
            return Ok(());
        }
        super::table(&result.entries, &mut app.out)?;
        app.out.flush()?;
        let told = result.entries.len() as u64;
        if told < result.total {
            app.notes.line(&format!("{told} of {} that were found", result.total));
        }
        Ok(())
    })
}
