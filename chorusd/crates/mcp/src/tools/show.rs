//! The tool `show`: reads a conversation.

use std::fmt::Write as _;

use chorus_base::error::{Error, Result};
use chorus_proto::methods::context;
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::pluralize::pluralize;
use chorus_proto::{Message, Session};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effect, Tool};
use crate::call::CallContext;
use crate::text::{self, Place, Transcript};

/// Messages that are fetched at once; most pages need no more.
const FETCHED_MESSAGES: u64 = 100;

pub(super) struct ShowTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Conversation: an id or name from `search` or `list`, `latest`, or `@` for the live one (default).
    session: Option<String>,
    /// Number of the first message to show, from 1.
    #[schemars(range(min = 1))]
    from: Option<u64>,
    /// Characters of that message to leave out, as the page before says.
    offset: Option<u64>,
    /// Agent of the session, if `search` or `list` name another one.
    agent: Option<String>,
}

/// A page of messages from the daemon.
struct Page {
    head: String,
    messages: Vec<Message>,
    /// Number of all messages, if known.
    total: Option<u64>,
    next: Option<u64>,
    /// By which the following pages are of the same conversation.
    id: String,
}

impl Tool for ShowTool {
    const NAME: &'static str = "show";
    const TITLE: &'static str = "Show a conversation";
    const DESCRIPTION: &'static str =
        "Shows the summary, the notes and the messages of a conversation, a page at a time.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let named = args.session.clone().unwrap_or_else(|| "@".to_owned());
        let from = args.from.unwrap_or(1);
        let offset = usize::try_from(args.offset.unwrap_or(0)).unwrap_or(usize::MAX);
        if from == 0 {
            return Err(Error::invalid("the first message is 1").hint("set `from` to 1 or more"));
        }
        let mut page = fetch(&named, &args, from - 1, context).await?;
        let (id, total) = (page.id.clone(), page.total);
        let is_start = from == 1 && offset == 0;
        let mut head = if is_start { std::mem::take(&mut page.head) } else { format!("session {id}\n") };
        if let Some(total) = total {
            let _ = writeln!(head, "{}; {}", pluralize(total, "message"), text::QUOTES);
        }
        if total.is_some_and(|total| from > total.max(1)) {
            let _ = writeln!(head, "message {from} does not exist");
            return Ok(head);
        }
        let mut transcript = Transcript::new(head, Place { message: from, offset });
        loop {
            page.messages.iter().for_each(|message| transcript.push(message));
            match page.next {
                Some(next) if !transcript.is_full && !page.messages.is_empty() => {
                    page = fetch(&id, &args, next, context).await?;
                }
                _ => break,
            }
        }
        let Transcript { mut text, next, is_full } = transcript;
        if is_full {
            let _ = write!(text, "\nto read on, call show with session={id:?} from={}", next.message);
            if next.offset > 0 {
                let _ = write!(text, " offset={}", next.offset);
            }
            if let Some(agent) = &args.agent {
                let _ = write!(text, " agent={agent:?}");
            }
            text.push('\n');
        }
        Ok(text)
    }
}

async fn fetch(session: &str, args: &Args, offset: u64, context: &CallContext) -> Result<Page> {
    let agent = args.agent.clone().or_else(|| context.agent());
    let (offset, limit) = (Some(offset), Some(FETCHED_MESSAGES));
    if let Some(name) = session.strip_prefix('@') {
        let conversation = if name.is_empty() { context.conversation() } else { Some(name.to_owned()) };
        let params = context::ShowParams { agent, conversation, offset, limit, ..context::ShowParams::default() };
        let shown = context.call::<context::Show>(&params).await?;
        let name = shown.conversation.as_ref().map_or("main", |conversation| &conversation.name);
        let head = format!(
            "live conversation {name} of agent {}\n{}",
            text::one_line(&shown.agent_name, 60),
            text::truncate(text::notes(&shown.working_set), text::MAX_TEXT_BYTES / 4)
        );
        let total = shown.context.as_ref().map_or(0, |context| context.messages);
        let id = format!("@{name}");
        return Ok(Page { head, messages: shown.messages, total: Some(total), next: shown.next, id });
    }
    let params = GetParams {
        own: context.own() && args.agent.is_none(),
        agent,
        conversation: context.conversation(),
        session: session.to_owned(),
        offset,
        limit,
    };
    let shown = context.call::<Get>(&params).await?;
    let mut head = text::session_head(&shown.session);
    for warning in &shown.warnings {
        let _ = writeln!(head, "warning: {warning}");
    }
    let Session { header, short_id, .. } = shown.session;
    Ok(Page { head, messages: shown.messages, total: Some(header.message_count), next: shown.next, id: short_id })
}
