//! `chorusctl session show`.

use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{Session, SummarySource, TokenPair};

use crate::app::App;
use crate::commands::agent::show::field;
use crate::commands::transcript::{PAGE, Transcript};
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;
use crate::ui::words::{count, count_tokens};
use crate::ui::{Out, Style, safe};

/// Show a saved conversation
///
/// A session is `latest`, `latest~N`, a number of the last `history`, a session_id, a UUID, or a unique beginning
/// of either.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session
    session: String,
}

/// Shows it.
///
/// # Errors
/// Why it cannot be shown.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let agent = app.agent();
    let text = app.out.format() == Format::Text;
    let limit = text.then_some(PAGE);
    let own = app.global.agent.is_none();
    let first = GetParams { agent: agent.clone(), session: args.session.clone(), own, offset: None, limit };
    let following = |session: &str, offset| GetParams {
        agent: agent.clone(),
        session: session.to_owned(),
        own,
        offset: Some(offset),
        limit,
    };
    if !text {
        return reply::whole::<Get, _>(app, "messages", &first, |offset| following(&args.session, offset));
    }
    let mut page = app.call::<Get>(&first)?;
    // Whatever is saved meanwhile, the following pages are of this one.
    let id = page.session.header.id.to_string();
    for warning in &page.warnings {
        app.notes.warning(warning);
    }
    heading(&mut app.out, &page.session)?;
    let mut transcript = Transcript::new(0);
    loop {
        for message in &page.messages {
            transcript.message(&mut app.out, message)?;
        }
        match page.next {
            Some(offset) if !page.messages.is_empty() => page = app.call::<Get>(&following(&id, offset))?,
            _ => return Ok(()),
        }
    }
}

fn heading(out: &mut Out, session: &Session) -> Result<(), Failure> {
    let header = &session.header;
    let name = safe::one_line(&header.session_id);
    writeln!(out, "{}", out.paint(Style::Strong, &name))?;
    let saved = out.clock().local(header.saved_at);
    let ago = out.clock().ago(header.saved_at);
    let started = out.clock().local(header.started_at);
    field(out, "saved", &format!("{saved} ({ago}), {}", header.trigger.as_str()))?;
    field(out, "started", &started)?;
    field(out, "agent", &header.agent_name)?;
    let size = format!("{}, {}", count(header.message_count, "message"), count_tokens(header.token_estimate));
    field(out, "size", &size)?;
    let TokenPair { input, output } = header.restoration_tokens;
    if !header.restoration_tokens.is_zero() {
        field(out, "resuming cost", &format!("{input} tokens in, {output} out"))?;
    }
    if let Some(description) = &header.description {
        field(out, "description", description)?;
    }
    if let Some(summary) = &header.summary {
        field(out, "summary", summary)?;
        if header.summary_source != SummarySource::None {
            field(out, "summary from", header.summary_source.as_str())?;
        }
    }
    if !header.tags.is_empty() {
        field(out, "tags", &header.tags.join(" "))?;
    }
    if let Some(parent) = header.parent_id {
        field(out, "continues", &parent.to_string())?;
    }
    field(out, "id", &header.id.to_string())?;
    field(out, "file", &session.file_path)
}
