//! `chorusctl search`: finds what was said in conversations.

mod excluded_words;
mod hit;
mod interactive;
mod mode;
pub mod model;
mod next_commands;

use chorus_proto::methods::search::{Search, SearchIndexState, SearchParams, SearchResult};

use crate::app::{App, parse_result};
use crate::cli::GlobalOptions;
use crate::commands::message_role::MessageRole;
use crate::commands::project;
use crate::error::Error;
use crate::print_pages;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::{RowArgs, Table, terminal};

pub use excluded_words::{separate_excluded_words, separate_model_word};

/// Find messages in saved and live conversations
///
/// Searches the messages of saved and live conversations, and the titles, summaries and tags of saved ones: those of an agent with the imported ones, with
/// --conversation those of one conversation, with --all-agents all. The best match comes first.
///
/// The words need no quotes, and other forms of them match, too. `word*` matches words that start with it, and -word leaves out messages with the word.
/// For a phrase, put double quotes inside single quotes. Everything after `--` is part of the query. If the query names a time, such as "last week", "in
/// May" or "on 3 May 2026", messages near that time are ranked higher; --since and --until exclude all others.
///
/// With --columns, --sort or --filter, the results are a table.
///
/// Without a query it is interactive: results appear while you type. Enter shows the message in a pager, `r` restores the conversation up to it, and `b`
/// branches there.
#[derive(Debug, Default, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_help_heading = "More",
    after_help = "Examples:\n  chorusctl search                              as you type, on a terminal\n  \
    chorusctl search why did we drop redis\n  \
    chorusctl search redis -cache                 leaves out messages with \"cache\"\n  \
    chorusctl search '\"connection pool\"' 'time*'  a phrase, and a prefix\n  \
    chorusctl search ffmpeg --tool bash           in the commands that agents ran\n  \
    chorusctl search redis -- -Cache              after --, as it looks like -C"
)]
pub struct Args {
    /// Words to find [default: interactive search, on a terminal]
    #[arg(value_name = "QUERY")]
    pub words: Vec<String>,
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Search the conversations of all agents
    #[arg(long)]
    all_agents: bool,
    /// Maximum number of results, up to 100 [default: 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    limit: Option<u64>,
    /// Only messages since then: 7d, 1h30m, yesterday, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only messages before then
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only sessions with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only messages of this role
    #[arg(long, value_enum)]
    role: Option<MessageRole>,
    /// Only messages with a call of this tool, e.g. bash
    #[arg(long)]
    tool: Option<String>,
    /// Only messages from this source: cli, discord, agent, import, or the format of an import, e.g. claude-code
    #[arg(long)]
    source: Option<String>,
    /// Only sessions with this model
    #[arg(long)]
    model: Option<String>,
    /// Only conversations held in this directory or below it (`.` is the current one), in one of this name, or agents of this project;
    /// searches all agents
    #[arg(long, value_name = "DIR|NAME")]
    project: Option<String>,
    /// Search by words, by meaning or by both [default: both with a model, see chorusctl search model]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "text|semantic|hybrid")]
    mode: Option<mode::Mode>,
    /// First wait until all messages are indexed
    #[arg(long)]
    wait: bool,
    /// Show how each score is composed
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    rows: RowArgs,
}

/// The subcommands of `search`.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Show or choose the model that finds messages by their meaning
    Model(model::Args),
}

impl Args {
    /// Returns true if not every message is searched.
    fn has_filter(&self) -> bool {
        let texts = [&self.since, &self.until, &self.tag, &self.tool, &self.source, &self.model, &self.project];
        self.role.is_some() || texts.into_iter().any(Option::is_some)
    }
}

impl Args {
    /// Returns the request for `query`.
    fn params(self, query: String, app: &App) -> SearchParams {
        let all_agents = self.all_agents || (self.project.is_some() && app.global.agent.is_none());
        SearchParams {
            agent: if all_agents { None } else { app.agent() },
            conversation: app.global.conversation.clone(),
            all_agents,
            own: app.global.agent.is_none(),
            query,
            limit: self.limit,
            since: self.since,
            until: self.until,
            tag: self.tag,
            role: self.role.map(Into::into),
            tool: self.tool,
            source: self.source,
            model: self.model,
            project: self.project,
            mode: self.mode.map(Into::into),
            explain: self.explain,
            wait: self.wait,
        }
    }
}

/// Returns true if a search without a query can be interactive.
#[must_use]
pub fn can_be_interactive(global: &GlobalOptions) -> bool {
    global.output_format() == OutputFormat::Text && terminal::can_show_full_screen()
}

pub fn run(mut args: Args, app: &mut App) -> Result<(), Error> {
    if let Some(Action::Model(model)) = args.action.take() {
        return model::run(model, app);
    }
    args.project = project::of_daemon(args.project.as_deref(), app)?;
    if args.words.is_empty() {
        return interactive::run(args, app);
    }
    app.page_if_long();
    let rows = std::mem::take(&mut args.rows);
    let table = Table::arranged(hit::COLUMNS, &rows, app.stdout.format())?;
    let query = join_query(&args.words)?;
    let is_filtered = args.has_filter() || app.global.conversation.is_some();
    let params = args.params(query, app);
    let all_agents = params.all_agents;
    if params.wait {
        wait_for_index(app, &params)?;
    }
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<Search>(&params)?;
        print_pages::print_entries(&mut app.stdout, &raw, "hits")?;
        app.stdout.flush()?;
        print_notices(app, &parse_result(&raw)?);
        return Ok(());
    }
    app.call_and_print::<Search>(&params, |app, result| {
        if rows.is_given() {
            hit::write_table(table, &mut app.stdout, &result.hits)?;
            app.stdout.finish()?;
        } else {
            print_hits(app, &result)?;
        }
        if result.hits.is_empty() {
            let line = no_match_yet_line(result.index).map(str::to_owned);
            app.stderr.line(&line.unwrap_or_else(|| no_match_line(is_filtered, all_agents)));
        }
        print_notices(app, &result);
        if !app.stdout.is_quiet()
            && let Some(hit) = result.hits.first()
        {
            app.stderr.hint(&next_commands::hint(hit, app.global.agent.as_deref(), result.agent_name.as_deref()));
        }
        Ok(())
    })
}

/// Waits until all messages are indexed, and shows how far the index is.
fn wait_for_index(app: &mut App, params: &SearchParams) -> Result<(), Error> {
    let advice = "the daemon continues in the background; how far it is: chorusctl status";
    let progress = ProgressBar::new("search index".into(), &["indexing"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, advice).after_report())
        .from_the_start();
    let first = SearchParams { limit: Some(1), ..params.clone() };
    app.call_with_progress::<Search>(&first, progress).map(drop)
}

/// Joins the words of the command line.
///
/// # Errors
/// The query names nothing to search for.
fn join_query(words: &[String]) -> Result<String, Error> {
    let query = words.join(" ");
    let query = query.trim();
    if query.is_empty() {
        return Err(Error::usage("the query is empty").with_hint("name words to find: chorusctl search redis"));
    }
    if query.split_whitespace().all(|word| word.starts_with('-')) {
        return Err(Error::usage("the query only excludes words")
            .with_hint(format!("add a word to find: chorusctl search redis {query}")));
    }
    Ok(query.to_owned())
}

/// Prints the hits, and waits until the user has left the pager, so that what follows on standard error is below them.
fn print_hits(app: &mut App, result: &SearchResult) -> Result<(), Error> {
    for hit in &result.hits {
        hit::print(&mut app.stdout, hit, result.agent_name.as_deref())?;
    }
    app.stdout.finish()
}

/// Prints warnings and the progress of an incomplete index.
fn print_notices(app: &App, result: &SearchResult) {
    for warning in &result.warnings {
        app.stderr.warning(warning);
    }
    if let Some(percent) = result.index.percent_indexed() {
        app.stderr.line(&format!("{percent} % indexed; results may be missing (wait for them with --wait)"));
    }
}

/// Returns the line for a search without hits.
fn no_match_line(is_filtered: bool, all_agents: bool) -> String {
    let filters = if is_filtered { ", fewer filters" } else { "" };
    let agents = if all_agents { "" } else { ", or --all-agents" };
    format!("no matches: try fewer words{filters}{agents}")
}

/// Returns the line for a search without hits that did not see the newest messages; `None` if it did, or if the progress says how much is
/// missing.
fn no_match_yet_line(index: SearchIndexState) -> Option<&'static str> {
    let is_nearly_complete = !index.complete && index.percent_indexed().is_none();
    is_nearly_complete.then_some("no matches yet: the newest messages are not indexed; try again in a moment")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_needs_a_word_to_find() {
        let join = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            join_query(&words).map_err(|error| error.message().to_owned())
        };
        assert_eq!(join(&["drop", "redis -cache"]), Ok("drop redis -cache".into()));
        assert_eq!(join(&[" ", ""]), Err("the query is empty".into()));
        assert_eq!(join(&["-cache", "-pool -x"]), Err("the query only excludes words".into()));
    }

    #[test]
    fn no_match_says_what_can_still_be_tried() {
        assert_eq!(no_match_line(false, false), "no matches: try fewer words, or --all-agents");
        assert_eq!(no_match_line(true, true), "no matches: try fewer words, fewer filters");
        let index = SearchIndexState { complete: true, indexed: 9, total: 9, messages: 120 };
        let behind = SearchIndexState { complete: false, ..index };
        let rebuilt = SearchIndexState { complete: false, indexed: 1, total: 9, messages: 12 };
        let line = "no matches yet: the newest messages are not indexed; try again in a moment";
        assert_eq!([index, behind, rebuilt].map(no_match_yet_line), [None, Some(line), None]);
    }
}
