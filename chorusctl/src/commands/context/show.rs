//! `chorusctl context show`: prints the live context.

use chorus_proto::ContextInfo;
use chorus_proto::command_text::add_target;
use chorus_proto::methods::context::{Show, ShowParams, ShowResult};

use super::show_window;
use crate::app::App;
use crate::commands::format;
use crate::commands::message_range::MessageRange;
use crate::commands::notes::print::write_working_set;
use crate::commands::transcript::{PAGE_SIZE, TranscriptPrinter};
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Style, sanitize, text};

/// Maximum number of notes of each kind.
const MAX_NOTES: usize = 10;

/// Show the live conversation, its summary and its notes
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    range: MessageRange,
    /// Show what the next request to the model would contain, and the size of each part
    #[arg(long, conflicts_with_all = ["last", "at", "around"])]
    window: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if args.window { show_window::run(app) } else { show(app, args.range) }
}

/// Prints the messages of the live conversation.
pub fn show(app: &mut App, range: MessageRange) -> Result<(), Error> {
    let conversation = app.conversation();
    show_conversation(app, conversation, range, None)
}

/// Prints the messages of the live conversation `name`, whichever the command line names.
pub fn show_named(app: &mut App, name: &str, range: MessageRange) -> Result<(), Error> {
    show_conversation(app, Some(name.to_owned()), range, Some(&format!("@{name}")))
}

/// Prints the messages of one of the agent's live conversations. `named` is what a hint calls it, if the command does not mean it
/// anyway.
fn show_conversation(
    app: &mut App,
    conversation: Option<String>,
    range: MessageRange,
    named: Option<&str>,
) -> Result<(), Error> {
    app.page_if_long();
    let all = ShowParams { agent: app.agent(), conversation, ..ShowParams::default() };
    let following = |offset, limit| ShowParams { offset: Some(offset), limit, ..all.clone() };
    let excerpt = range.excerpt();
    let first = |limit| match excerpt {
        Some(excerpt) => following(excerpt.offset, Some(excerpt.limit)),
        None => ShowParams { last: range.last, limit, ..all.clone() },
    };
    if app.stdout.format() != OutputFormat::Text {
        return match excerpt {
            Some(_) => print_pages::print_page::<Show, _>(app, "messages", &first(None)),
            None => {
                print_pages::print_all_pages::<Show, _>(app, "messages", &first(None), |offset| following(offset, None))
            }
        };
    }
    let mut page = app.call::<Show>(&first(range.is_all().then_some(PAGE_SIZE)))?;
    let Some(context) = page.context.take().filter(|context| context.messages > 0) else {
        write_working_set(app, &page.working_set, MAX_NOTES)?;
        app.stdout.flush()?;
        let name = page.conversation.map(|conversation| format!(" {}", sanitize::one_line(&conversation.name)));
        app.stderr.line(&format!("the conversation{} of {} is empty", name.unwrap_or_default(), page.agent_name));
        let named = all.conversation.as_deref().filter(|named| Some(*named) != app.conversation().as_deref());
        app.stderr.hint(&add_target("chorusctl chat, or chorusctl restore latest", None, named));
        return Ok(());
    };
    if let Some(excerpt) = excerpt {
        return excerpt.print(&mut app.stdout, &page.messages, context.messages, named);
    }
    print_heading(app, &page, &context)?;
    write_working_set(app, &page.working_set, MAX_NOTES)?;
    let behind = page.next.unwrap_or(context.messages);
    let mut transcript = TranscriptPrinter::new(behind.saturating_sub(page.messages.len() as u64));
    loop {
        for message in &page.messages {
            transcript.print_message(&mut app.stdout, message)?;
        }
        match page.next {
            Some(offset) if !page.messages.is_empty() => {
                page = app.call::<Show>(&following(offset, Some(PAGE_SIZE)))?
            }
            _ => return Ok(()),
        }
    }
}

fn print_heading(app: &mut App, page: &ShowResult, context: &ContextInfo) -> Result<(), Error> {
    let started = app.stdout.clock().local_date_time(context.started_at);
    let agent = format::agent_and_conversation(&page.agent_name, page.conversation.as_ref());
    let heading = format!("{agent} · {} · started {started}", format::context(context));
    for line in text::wrap(&heading, app.stdout.width().unwrap_or(usize::MAX)) {
        match line.strip_prefix(&agent) {
            Some(rest) => writeln!(app.stdout, "{}{rest}", app.stdout.style(Style::Strong, &agent))?,
            None => writeln!(app.stdout, "{line}")?,
        }
    }
    Ok(())
}
