//! `chorusctl context show`.

use chorus_proto::methods::context::{Show, ShowParams};

use super::pin::list;
use super::window;
use crate::app::App;
use crate::commands::describe;
use crate::commands::transcript::{PAGE, Transcript};
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;
use crate::ui::{Style, safe};

/// Show the live conversation
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the last N messages
    #[arg(long, value_name = "N")]
    last: Option<u64>,
    /// What the next call of the model would be sent instead, and what each part of it costs
    #[arg(long, conflicts_with = "last")]
    window: bool,
}

/// Shows it.
///
/// # Errors
/// Why it cannot be shown.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    if args.window {
        return window::run(app);
    }
    let agent = app.agent();
    let following =
        |offset, limit| ShowParams { agent: agent.clone(), offset: Some(offset), limit, ..ShowParams::default() };
    if app.out.format() != Format::Text {
        let first = ShowParams { agent: agent.clone(), last: args.last, ..ShowParams::default() };
        return reply::whole::<Show, _>(app, "messages", &first, |offset| following(offset, None));
    }
    let limit = args.last.is_none().then_some(PAGE);
    let mut page =
        app.call::<Show>(&ShowParams { agent: agent.clone(), last: args.last, limit, ..ShowParams::default() })?;
    let Some(context) = page.context.filter(|context| context.messages > 0) else {
        list(&mut app.out, &page.working_set.pinned_facts)?;
        app.notes.line(&format!("the context of {} is empty", page.agent_name));
        app.notes.hint("chorusctl context append TEXT, or chorusctl context restore latest");
        return Ok(());
    };
    heading(app, &page.agent_name, &context)?;
    if !page.working_set.pinned_facts.is_empty() {
        writeln!(app.out, "pinned")?;
        list(&mut app.out, &page.working_set.pinned_facts)?;
    }
    let behind = page.next.unwrap_or(context.messages);
    let mut transcript = Transcript::new(behind.saturating_sub(page.messages.len() as u64));
    loop {
        for message in &page.messages {
            transcript.message(&mut app.out, message)?;
        }
        match page.next {
            Some(offset) if !page.messages.is_empty() => page = app.call::<Show>(&following(offset, Some(PAGE)))?,
            _ => return Ok(()),
        }
    }
}

fn heading(app: &mut App, agent: &str, context: &chorus_proto::ContextInfo) -> Result<(), Failure> {
    let started = app.out.clock().local(context.started_at);
    let agent = safe::one_line(agent);
    let line = format!("{} · {} · started {started}", app.out.paint(Style::Strong, &agent), describe::context(context));
    writeln!(app.out, "{line}")
}
