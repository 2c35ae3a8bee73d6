//! `chorusctl session show`: prints a saved session.

use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{Session, SummarySource, TokenPair};

use crate::app::App;
use crate::commands::agent::show::write_field;
use crate::commands::transcript::{PAGE_SIZE, TranscriptPrinter};
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{format_token_count, pluralize};
use crate::ui::{Stdout, Style, sanitize};

/// Show a saved conversation
///
/// A session is `latest`, `latest~N`, a number of the last `history`, a session_id, a UUID, or a unique beginning
/// of either.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session
    session: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let agent = app.agent();
    let text = app.stdout.format() == OutputFormat::Text;
    let limit = text.then_some(PAGE_SIZE);
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
        return print_pages::print_all_pages::<Get, _>(app, "messages", &first, |offset| {
            following(&args.session, offset)
        });
    }
    let mut page = app.call::<Get>(&first)?;
    // Use the id from here on, so that the following pages are of the same session even if a new one is saved
    // meanwhile.
    let id = page.session.header.id.to_string();
    for warning in &page.warnings {
        app.stderr.warning(warning);
    }
    print_heading(&mut app.stdout, &page.session)?;
    let mut transcript = TranscriptPrinter::new(0);
    loop {
        for message in &page.messages {
            transcript.print_message(&mut app.stdout, message)?;
        }
        match page.next {
            Some(offset) if !page.messages.is_empty() => page = app.call::<Get>(&following(&id, offset))?,
            _ => return Ok(()),
        }
    }
}

fn print_heading(out: &mut Stdout, session: &Session) -> Result<(), Error> {
    let header = &session.header;
    let name = sanitize::one_line(&header.session_id);
    writeln!(out, "{}", out.style(Style::Strong, &name))?;
    let saved = out.clock().local_date_time(header.saved_at);
    let ago = out.clock().ago(header.saved_at);
    let started = out.clock().local_date_time(header.started_at);
    write_field(out, "saved", &format!("{saved} ({ago}), {}", header.trigger.as_str()))?;
    write_field(out, "started", &started)?;
    write_field(out, "agent", &header.agent_name)?;
    let size = format!("{}, {}", pluralize(header.message_count, "message"), format_token_count(header.token_estimate));
    write_field(out, "size", &size)?;
    let TokenPair { input, output } = header.restoration_tokens;
    if !header.restoration_tokens.is_zero() {
        write_field(out, "resuming cost", &format!("{input} tokens in, {output} out"))?;
    }
    if let Some(description) = &header.description {
        write_field(out, "description", description)?;
    }
    if let Some(summary) = &header.summary {
        write_field(out, "summary", summary)?;
        if header.summary_source != SummarySource::None {
            write_field(out, "summary from", header.summary_source.as_str())?;
        }
    }
    if !header.tags.is_empty() {
        write_field(out, "tags", &header.tags.join(" "))?;
    }
    if let Some(parent) = header.parent_id {
        write_field(out, "continues", &parent.to_string())?;
    }
    write_field(out, "id", &header.id.to_string())?;
    write_field(out, "file", &session.file_path)
}
