//! The head of the page and the session's metadata.

use std::io::{self, Write};

use chorus_proto::{Item, SessionSource, TokenPair};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::super::Export;
use super::text::{escape, truncate_line};

/// The style sheet of the page.
pub const STYLE: &str = include_str!("style.css");

/// Forbids the page to fetch, run or send anything. Images are embedded in the page.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Writes everything before the first message.
pub(super) fn write(out: &mut impl Write, text: &Export<'_>) -> io::Result<()> {
    let header = text.header;
    let title = header.description.as_deref().filter(|title| !title.trim().is_empty());
    let title = escape(&truncate_line(title.unwrap_or(&header.session_id), 200));
    writeln!(
        out,
        "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT_SECURITY_POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"Chorus\">\n\
         <title>{title}</title>\n{}<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>",
        index_fields(text)
    )?;
    let messages = match header.message_count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    };
    // The agent of an imported conversation is only where it is kept.
    let program = header.source.as_ref().and_then(SessionSource::known_program);
    let agent = program.is_none().then_some(&*header.agent_name);
    let names = [agent, header.model.as_deref(), program];
    let names = names.into_iter().flatten().map(escape).collect::<Vec<_>>().join(" · ");
    let started = format_time(text.began_at());
    writeln!(out, "<p class=\"line\">{names} · {started} · {messages}</p>")?;
    if let Some(summary) = header.summary.as_deref().filter(|summary| !summary.trim().is_empty()) {
        writeln!(out, "<p class=\"summary\">{}</p>", escape(summary))?;
    }
    let set = &header.working_set;
    for (name, items) in [
        ("Pinned", &set.pinned_facts),
        ("Facts", &set.facts),
        ("Topics", &set.topics),
        ("Decisions", &set.decisions),
        ("Open tasks", &set.open_tasks),
        ("Contradictions", &set.conflicts),
    ] {
        write_items(out, name, items)?;
    }
    write_details(out, text)?;
    out.write_all(b"</header>\n")
}

/// Returns what the index page of a directory shows of this page, as elements of the head.
fn index_fields(text: &Export<'_>) -> String {
    let header = text.header;
    let mut fields = String::new();
    let mut field = |name: &str, value: &str| {
        fields.push_str(&format!("<meta name=\"chorus:{name}\" content=\"{}\">\n", escape(&truncate_line(value, 200))));
    };
    field("agent", &header.agent_name);
    if let Some(model) = &header.model {
        field("model", model);
    }
    field("saved", &header.saved_at.to_string());
    field("held", &text.held_at().to_string());
    field("messages", &header.message_count.to_string());
    if !header.tags.is_empty() {
        field("tags", &header.tags.join(", "));
    }
    fields
}

fn format_time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn write_items(out: &mut impl Write, name: &str, items: &[Item]) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>{name}</h2>\n<ul>")?;
    items.iter().try_for_each(|item| writeln!(out, "<li>{}</li>", escape(&item.text)))?;
    out.write_all(b"</ul>\n")
}

fn write_details(out: &mut impl Write, text: &Export<'_>) -> io::Result<()> {
    let (header, parent) = (text.header, text.parent);
    out.write_all(b"<details class=\"facts\"><summary>About this conversation</summary>\n<dl>\n")?;
    let mut fact = |name: &str, value: &str| writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escape(value));
    fact("Session", &header.session_id)?;
    fact("Id", &header.id.to_string())?;
    fact("Started", &format_time(text.began_at()))?;
    fact("Saved", &text.saved_line(", ", format_time))?;
    if let Some(model) = &header.model {
        fact("Model", model)?;
    }
    if let Some(id) = header.parent_id {
        fact("Continues from", &parent.map_or_else(|| id.to_string(), |parent| parent.session_id.clone()))?;
    }
    if let Some(import) = text.import() {
        fact("Imported from", &import.to_line())?;
    }
    if header.restoration_tokens != TokenPair::default() {
        let TokenPair { input, output } = header.restoration_tokens;
        fact("Restoration", &format!("{input} tokens in, {output} out"))?;
    }
    fact("Queries", &header.query_count.to_string())?;
    fact("Tokens", &format!("about {}", header.token_estimate))?;
    if !header.tags.is_empty() {
        fact("Tags", &header.tags.join(", "))?;
    }
    out.write_all(b"</dl>\n</details>\n")
}
