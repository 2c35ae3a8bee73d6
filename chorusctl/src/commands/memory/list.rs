//! `chorusctl memory list`.

use chorus_proto::methods::memory::{List, ListParams, ListResult, MemoryEntry};

use crate::app::App;
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;
use crate::ui::words::count_tokens;

/// List what an agent remembers, in the order in which its model is shown it
///
/// What people wrote comes first, then what agents did, the newest of each first. The model is shown as much of that as
/// has room; the rest is counted and named there.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// Lists it.
///
/// # Errors
/// Why there is no list.
pub fn run(args: &Args, app: &mut App) -> Result<(), Failure> {
    let agent = app.agent();
    let params = |offset| ListParams { agent: agent.clone(), offset: Some(offset), limit: args.limit };
    if args.limit.is_none() && app.out.format() != Format::Text {
        return reply::whole::<List, _>(app, "entries", &params(0), params);
    }
    if app.out.format() == Format::Jsonl {
        let raw = app.call_raw::<List>(&params(0))?;
        return reply::lines(&mut app.out, &raw, "entries");
    }
    app.answer::<List>(&params(0), |app, first| {
        let (mut entries, mut next) = (first.entries, first.next);
        while let Some(offset) = next.filter(|_| args.limit.is_none()) {
            let page = app.call::<List>(&params(offset))?;
            entries.extend(page.entries);
            next = page.next.filter(|next| *next > offset);
        }
        text(&ListResult { entries: Vec::new(), ..first }, &entries, app)
    })
}

fn text(result: &ListResult, entries: &[MemoryEntry], app: &mut App) -> Result<(), Failure> {
    if result.total == 0 {
        app.notes.line("nothing is remembered; `chorusctl memory add TEXT` adds something");
        return Ok(());
    }
    super::table(entries, &mut app.out)?;
    app.out.flush()?;
    let used = format!("{} of {}", result.tokens, count_tokens(result.token_budget));
    if result.shown < result.total {
        app.notes.line(&format!("the model is shown {} of {} ({used})", result.shown, result.total));
    }
    Ok(())
}
