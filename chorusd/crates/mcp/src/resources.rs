//! Saved conversations as resources, in Markdown.

use chorus_base::error::{Error, Result};
use chorus_proto::Session;
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::export::{ExportFormat, Read, ReadParams};
use chorus_proto::pluralize::pluralize;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use uuid::Uuid;

use crate::call::CallContext;
use crate::text;

/// Beginning of the addresses of saved conversations.
const PREFIX: &str = "chorus://session/";
const MIME_TYPE: &str = "text/markdown";
/// Sessions on a page of the list.
const PAGE_SIZE: u64 = 50;
/// The limit on bytes of a part of a conversation.
const MAX_PART_BYTES: usize = 256 << 10;

/// Returns a page of the saved conversations, newest first, and the number of the next one. Those of all agents are
/// listed, unless one is named.
pub(crate) async fn list(context: &CallContext, page: u64) -> Result<(Vec<Resource>, Option<u64>)> {
    let params = HistoryParams {
        agent: context.agent(),
        all_agents: context.agent().is_none(),
        own: context.own(),
        page: Some(page),
        limit: Some(PAGE_SIZE),
        keep_numbers: true,
        ..HistoryParams::default()
    };
    let result = context.call::<History>(&params).await?;
    let next = (result.page < result.pages).then(|| result.page + 1);
    Ok((result.sessions.iter().map(describe).collect(), next))
}

fn describe(session: &Session) -> Resource {
    let header = &session.header;
    let description = format!(
        "{}, agent {}, {}",
        text::time(text::when(session)),
        text::one_line(&header.agent_name, 60),
        pluralize(header.message_count, "message")
    );
    Resource::new(format!("{PREFIX}{}", header.id), header.session_id.clone())
        .with_title(text::title(session))
        .with_description(description)
        .with_mime_type(MIME_TYPE)
}

/// Returns the forms of addresses.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(MIME_TYPE)
    };
    vec![
        template("chorus://session/{id}", "session", "A saved conversation by its id, as Markdown"),
        template(
            "chorus://session/{id}?offset={offset}",
            "session-part",
            "A further part of a long conversation; the part before names the offset",
        ),
    ]
}

/// Returns a saved conversation, or of a long one the part that the address names; `None` if the address is none of ours.
pub(crate) async fn read(context: &CallContext, uri: &str) -> Result<Option<ResourceContents>> {
    let Some((id, offset)) = parse(uri) else { return Ok(None) };
    let params = ReadParams {
        agent: context.agent(),
        conversation: context.conversation(),
        session: id.to_string(),
        form: ExportFormat::Md,
        plain: true,
        offset: Some(offset),
        ..ReadParams::default()
    };
    let no_part = || {
        Error::invalid(format!("no part of the conversation starts at {offset}"))
            .hint(format!("read it from the start: {PREFIX}{id}"))
    };
    let result = context.call::<Read>(&params).await;
    let result = result.map_err(|error| if error.message.contains("`offset`") { no_part() } else { error })?;
    if result.data.is_empty() && offset > 0 {
        return Err(no_part());
    }
    let mut text = result.data;
    let mut next = result.next;
    if text.len() > MAX_PART_BYTES {
        let mut end = MAX_PART_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // Parts of whole lines, if there are lines.
        end = text[..end].rfind('\n').map_or(end, |at| at + 1);
        text.truncate(end);
        next = Some(offset + end as u64);
    }
    if let Some(next) = next {
        text.push_str(&format!("\n\n[continues at {PREFIX}{id}?offset={next}]\n"));
    }
    Ok(Some(ResourceContents::text(text, uri).with_mime_type(MIME_TYPE)))
}

/// Parses an address.
fn parse(uri: &str) -> Option<(Uuid, u64)> {
    let rest = uri.strip_prefix(PREFIX)?;
    let (id, offset) = match rest.split_once("?offset=") {
        Some((id, offset)) => (id, offset.parse().ok()?),
        None => (rest, 0),
    };
    Some((Uuid::try_parse(id).ok()?, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_sessions() {
        let id = "1f3a9c02-0000-4000-8000-000000000000";
        let known = Uuid::try_parse(id).ok();
        assert_eq!(parse(&format!("chorus://session/{id}")), known.map(|id| (id, 0)));
        assert_eq!(parse(&format!("chorus://session/{id}?offset=9")), known.map(|id| (id, 9)));
        for wrong in ["", "file:///etc/passwd", "chorus://session/", "chorus://session/1f3a", "chorus://agent/x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(parse(&format!("chorus://session/{id}?offset=-1")), None);
    }
}
