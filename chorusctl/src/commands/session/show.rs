//! `chorusctl session show`: prints a saved session.

use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{Session, SessionSource, SummarySource, TokenPair};

use crate::app::App;
use crate::commands::agent::show::write_field;
use crate::commands::message_range::MessageRange;
use crate::commands::transcript::{PAGE_SIZE, TranscriptPrinter};
use crate::commands::{context, format};
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{format_token_count, pluralize};
use crate::ui::{Stdout, Style, sanitize};

/// Show a saved conversation
///
/// A session is `latest`, `latest~N`, `@` (the live one), `@NAME` (that of the conversation NAME), `-` (the one before), a number from the last `history`, an ID, a
/// name or a slug (or a unique prefix of one), a word of its title, or `tag:NAME`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation
    session: String,
    #[command(flatten)]
    range: MessageRange,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    show_selected(app, &args.session, args.range)
}

/// Prints the messages of a saved conversation, or for `@` and `@NAME` those of a live one.
pub fn show_selected(app: &mut App, session: &str, range: MessageRange) -> Result<(), Error> {
    match session.strip_prefix('@') {
        Some("") => context::show::show(app, range),
        Some(name) => context::show::show_named(app, name, range),
        None => show(app, session, range),
    }
}

/// Prints the messages of a saved conversation.
fn show(app: &mut App, session: &str, range: MessageRange) -> Result<(), Error> {
    app.page_if_long();
    let (agent, conversation) = (app.agent(), app.conversation());
    let own = app.global.agent.is_none();
    let get = |session: &str, offset, limit| {
        let session = session.to_owned();
        GetParams { conversation: conversation.clone(), agent: agent.clone(), session, own, offset, limit }
    };
    let (excerpt, named) = (range.excerpt(), session);
    let (session, offset) = match range.last {
        Some(last) => {
            let header = app.call::<Get>(&get(session, None, Some(0)))?.session.header;
            (header.id.to_string(), Some(header.message_count.saturating_sub(last)))
        }
        None => (session.to_owned(), excerpt.map(|excerpt| excerpt.offset)),
    };
    let limit = excerpt.map(|excerpt| excerpt.limit);
    if app.stdout.format() != OutputFormat::Text {
        let first = get(&session, offset, limit);
        return match limit {
            Some(_) => print_pages::print_page::<Get, _>(app, "messages", &first),
            None => print_pages::print_all_pages::<Get, _>(app, "messages", &first, |offset| {
                get(&session, Some(offset), None)
            }),
        };
    }
    let mut page = app.call::<Get>(&get(&session, offset, limit.or(Some(PAGE_SIZE))))?;
    // Use the id from here on, so that the following pages are of the same session even if a new one is saved
    // meanwhile.
    let id = page.session.header.id.to_string();
    for warning in &page.warnings {
        app.stderr.warning(warning);
    }
    if let Some(excerpt) = excerpt {
        return excerpt.print(&mut app.stdout, &page.messages, page.session.header.message_count, Some(named));
    }
    print_heading(&mut app.stdout, &page.session)?;
    let mut transcript = TranscriptPrinter::new(offset.unwrap_or(0));
    loop {
        for message in &page.messages {
            transcript.print_message(&mut app.stdout, message)?;
        }
        match page.next {
            Some(offset) if !page.messages.is_empty() => {
                page = app.call::<Get>(&get(&id, Some(offset), Some(PAGE_SIZE)))?;
            }
            _ => return Ok(()),
        }
    }
}

/// Writes where an imported conversation comes from.
fn write_source(out: &mut Stdout, source: &SessionSource, model: Option<&str>) -> Result<(), Error> {
    let SessionSource { program, conversation, project, branch, ended_at, revision, redacted, .. } = source;
    let ended = out.clock().local_date_time(*ended_at);
    write_field(out, "ended", &ended)?;
    write_field(out, "source", &format!("{program} {conversation}"))?;
    let revision = (*revision > 1).then(|| revision.to_string());
    let redacted = redacted.then_some("secrets");
    for (name, value) in [
        ("project", project.as_deref()),
        ("branch", branch.as_deref()),
        ("model", model),
        ("revision", revision.as_deref()),
        ("redacted", redacted),
    ] {
        if let Some(value) = value {
            write_field(out, name, value)?;
        }
    }
    Ok(())
}

fn print_heading(out: &mut Stdout, session: &Session) -> Result<(), Error> {
    let header = &session.header;
    let name = sanitize::one_line(&header.session_id);
    writeln!(out, "{}", out.style(Style::Strong, &name))?;
    let saved = out.clock().local_date_time(header.saved_at);
    let ago = out.clock().ago(header.saved_at);
    let started = out.clock().local_date_time(header.started_at);
    write_field(out, "saved", &format!("{saved} ({ago}), {}", header.trigger.reason()))?;
    write_field(out, "started", &started)?;
    match &header.source {
        Some(source) => write_source(out, source, header.model.as_deref())?,
        None => write_field(out, "agent", &header.agent_name)?,
    }
    if let Some(conversation) = &header.conversation {
        write_field(out, "conversation", &conversation.name)?;
    }
    let size = format!("{}, {}", pluralize(header.message_count, "message"), format_token_count(header.token_estimate));
    write_field(out, "size", &size)?;
    let TokenPair { input, output } = header.restoration_tokens;
    if !header.restoration_tokens.is_zero() {
        write_field(out, "resume costs", &format!("{input} tokens in, {output} out"))?;
    }
    if let Some(description) = &header.description {
        write_field(out, "description", description)?;
    }
    if let Some(summary) = &header.summary {
        write_field(out, "summary", summary)?;
        if header.summary_source != SummarySource::None {
            write_field(out, "summary by", format::summary_author(header.summary_source))?;
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
