//! Renders one message of the page. Its anchor is its number in the session, which `chorusctl show --at` takes, too.

use std::io::{self, Write};

use chorus_proto::{Attachment, Message, Role, Usage};
use jiff::tz::TimeZone;

use super::markdown::render_markdown;
use super::params;
use super::text::escape;

/// Media types of images that browsers display and that cannot contain scripts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// How messages of a conversation are shown.
#[derive(Debug, Clone, Copy)]
pub struct MessageStyle<'a> {
    /// Stands for the author of replies that name none.
    pub agent_name: &'a str,
    /// The text before `#m12` in the link to a message; `{number}` in it stands for the number.
    pub link: &'a str,
    pub zone: &'a TimeZone,
}

/// Writes a message. `number` counts from 1, and `model` is what wrote the message, if that is known. HTML in the message is text.
///
/// # Errors
/// The writer failed.
pub fn write_message(
    out: &mut impl Write,
    number: u64,
    message: &Message,
    model: Option<&str>,
    style: &MessageStyle<'_>,
) -> io::Result<()> {
    let class = if message.is_error { "tool_result error" } else { message.role.as_str() };
    writeln!(out, "<article class=\"{class}\" id=\"m{number}\">")?;
    let at = message.timestamp;
    let time = at.to_zoned(style.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
    let who = escape(&speaker_name(message, style.agent_name));
    let model = model.map_or_else(String::new, |name| format!(" <span class=\"model\">{}</span>", escape(name)));
    let link = escape(&style.link.replace("{number}", &number.to_string()));
    writeln!(
        out,
        "<h2><span class=\"who\">{who}</span>{model} <span class=\"at\"><time datetime=\"{at}\">{time}</time> \
         <a class=\"anchor\" href=\"{link}#m{number}\">#{number}</a></span></h2>"
    )?;
    let content = &message.content;
    match message.role {
        Role::ToolResult => write_tool_result(out, message)?,
        _ if content.is_empty() => {}
        Role::Assistant | Role::User => writeln!(out, "<div class=\"rich\">\n{}</div>", render_markdown(content))?,
        Role::System => writeln!(out, "<div class=\"plain\">{}</div>", escape(content))?,
    }
    for call in &message.tool_calls {
        let (name, preview) = (escape(&call.name), params::preview(&call.params));
        writeln!(out, "<details><summary><b>{name}</b> <span class=\"preview\">{preview}</span></summary>")?;
        writeln!(out, "{}</details>", params::list(&call.params))?;
    }
    for attachment in &message.attachments {
        write_attachment(out, attachment)?;
    }
    if let Some(took) = message.usage.as_ref().and_then(format_usage) {
        writeln!(out, "<p class=\"took\">{took}</p>")?;
    }
    out.write_all(b"</article>\n")
}

fn speaker_name(message: &Message, agent: &str) -> String {
    let author = message.author.as_ref().map(|author| author.name.clone());
    match message.role {
        Role::System => "System".to_owned(),
        Role::User => author.unwrap_or_else(|| "You".to_owned()),
        Role::Assistant => author.unwrap_or_else(|| message.imported_from().unwrap_or(agent).to_owned()),
        Role::ToolResult => message.name.clone().unwrap_or_else(|| "Tool".to_owned()),
    }
}

/// Writes a tool result as a collapsed block, or an expanded one if the tool failed.
fn write_tool_result(out: &mut impl Write, message: &Message) -> io::Result<()> {
    let content = &message.content;
    let open = if message.is_error { " open" } else { "" };
    let said = if message.is_error { "Failed" } else { "Result" };
    let size = match content.lines().count() {
        0 => "empty".to_owned(),
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    };
    writeln!(out, "<details{open}><summary><b>{said}</b> <span class=\"preview\">{size}</span></summary>")?;
    writeln!(out, "<pre>{}</pre></details>", escape(content))
}

fn write_attachment(out: &mut impl Write, attachment: &Attachment) -> io::Result<()> {
    let name = escape(&attachment.name);
    let kind = attachment.media_type.as_deref().unwrap_or_default();
    let picture = attachment.data.as_deref().filter(|data| IMAGE_TYPES.contains(&kind) && is_base64(data));
    match picture {
        Some(data) => writeln!(out, "<img alt=\"{name}\" src=\"data:{kind};base64,{data}\">"),
        None => writeln!(out, "<p class=\"file\">{name}</p>"),
    }
}

fn is_base64(data: &str) -> bool {
    data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

/// Formats the duration and tokens of a model call, if they are known.
fn format_usage(usage: &Usage) -> Option<String> {
    let time = usage.duration_ms.map(|ms| format!("{}.{} s", ms / 1000, ms % 1000 / 100));
    let tokens = match (usage.input_tokens, usage.output_tokens) {
        (None, None) => None,
        (input, output) => Some(format!("{} tokens in, {} out", input.unwrap_or(0), output.unwrap_or(0))),
    };
    let parts: Vec<_> = time.into_iter().chain(tokens).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}
