//! The tool `recall`: shows what was remembered.

use std::fmt::Write as _;

use chorus_base::error::Result;
use chorus_proto::methods::memory::{List, ListParams, MemoryEntry, Search, SearchParams};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effect, Tool};
use crate::call::CallContext;
use crate::text;

/// The default and the greatest number of entries on a page.
const PAGE_SIZE: u64 = 50;
const MAX_PAGE_SIZE: u64 = 200;
/// The limit on characters of an entry.
const MAX_ENTRY_CHARS: usize = 2_000;

pub(super) struct RecallTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Words to find; without it, everything that is remembered is listed.
    query: Option<String>,
    /// Maximum number of entries, 1 to 200 (default 50).
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u64>,
    /// Page to show, from 1.
    #[schemars(range(min = 1))]
    page: Option<u64>,
}

impl Tool for RecallTool {
    const NAME: &'static str = "recall";
    const TITLE: &'static str = "Recall what is remembered";
    const DESCRIPTION: &'static str = "Shows what an agent remembers in every conversation, and passages of its notes. For conversations, use `search`.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let limit = args.limit.unwrap_or(PAGE_SIZE).clamp(1, MAX_PAGE_SIZE);
        let page = args.page.unwrap_or(1).max(1);
        let skipped = (page - 1).saturating_mul(limit);
        let mut text = String::new();
        let (entries, total) = match args.query {
            Some(query) => {
                // The daemon finds the best first and has no pages.
                let params = SearchParams { agent: context.agent(), query, limit: Some(skipped.saturating_add(limit)) };
                let found = context.call::<Search>(&params).await?;
                if found.partial {
                    text.push_str("nothing has all these words; this has some of them\n");
                }
                for passage in found.docs.iter().filter(|_| page == 1) {
                    let snippet = text::one_line(&passage.snippet, text::MAX_SNIPPET_CHARS);
                    let _ = writeln!(text, "{}:{}\n> {snippet}", text::one_line(&passage.path, 200), passage.line);
                }
                let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
                (found.entries.into_iter().skip(skipped).collect(), found.total)
            }
            None => {
                let params = ListParams { agent: context.agent(), offset: Some(skipped), limit: Some(limit) };
                let listed = context.call::<List>(&params).await?;
                (listed.entries, listed.total)
            }
        };
        let entries: Vec<MemoryEntry> = entries;
        let mut shown = 0;
        for entry in &entries {
            let line = line(entry);
            if text.len() + line.len() > text::MAX_TEXT_BYTES - 200 {
                break;
            }
            text.push_str(&line);
            shown += 1;
        }
        if text.is_empty() {
            return Ok("nothing is remembered about this; to search conversations, call search\n".to_owned());
        }
        if shown < entries.len() as u64 {
            let _ =
                writeln!(text, "{} more on this page; set `limit` to {shown} or less", entries.len() as u64 - shown);
        } else if skipped + shown < total {
            let _ = writeln!(text, "{shown} of {total}; for more, set `page` to {}", page + 1);
        }
        Ok(format!("{}\n{text}", text::QUOTES))
    }
}

/// Formats an entry: its id and date, and the text.
fn line(entry: &MemoryEntry) -> String {
    let mut line = format!("{}  {}", entry.short_id, text::time(entry.created_at));
    if let Some(path) = &entry.path {
        let _ = write!(line, ", about {}", text::one_line(path, 200));
    }
    let _ = write!(line, "\n> {}\n", text::one_line(&entry.text, MAX_ENTRY_CHARS));
    line
}
