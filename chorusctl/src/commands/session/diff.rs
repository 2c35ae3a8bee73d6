//! `chorusctl session diff`: prints the messages in which two sessions differ.

use chorus_proto::methods::session_branching::{Diff, DiffLine, DiffParams, DiffResult, Side};
use chorus_proto::{Role, Session};

use crate::app::App;
use crate::commands::format;
use crate::commands::transcript::PAGE_SIZE;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;
use crate::ui::{Stdout, Style, sanitize, text};

/// Without --all: messages printed of each session, and lines of each message.
const PREVIEW_MESSAGES: u64 = 10;
const PREVIEW_LINES: usize = 8;

/// Show where two conversations diverge
///
/// Compares the author and content of messages; IDs and times are ignored, because an import assigns new ones. Sessions are named as for
/// `restore`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// First conversation
    #[arg(value_name = "SESSION")]
    a: String,
    /// Second conversation
    #[arg(value_name = "SESSION")]
    b: String,
    /// Show all messages of both branches
    #[arg(long)]
    all: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.page_if_long();
    let (agent, conversation, own) = (app.agent(), app.conversation(), app.global.agent.is_none());
    let asked = |a: &str, b: &str, offset, limit| DiffParams {
        conversation: conversation.clone(),
        agent: agent.clone(),
        a: a.to_owned(),
        b: b.to_owned(),
        own,
        offset: Some(offset),
        limit,
    };
    if app.stdout.format() != OutputFormat::Text {
        let page = |offset| asked(&args.a, &args.b, offset, None);
        return print_pages::print_all_pages::<Diff, _>(app, "lines", &page(0), page);
    }
    let limit = if args.all { PAGE_SIZE } else { PREVIEW_MESSAGES };
    let first = app.call::<Diff>(&asked(&args.a, &args.b, 0, Some(limit)))?;
    print_heading(&mut app.stdout, &first)?;
    // Use the ids from here on, so that the following pages are of the same sessions even if new ones are saved
    // meanwhile. The live conversation has none that could be looked up.
    let id = |selector: &str, session: &Session| match session.file_path.is_empty() && session.available {
        true => selector.to_owned(),
        false => session.header.id.to_string(),
    };
    let (a, b) = (id(&args.a, &first.a), id(&args.b, &first.b));
    let of_a = first.a.header.message_count.saturating_sub(first.common);
    let of_b = first.b.header.message_count.saturating_sub(first.common);
    let mut page = first;
    let mut shown = 0;
    loop {
        for line in &page.lines {
            print_message(&mut app.stdout, line, args.all)?;
        }
        shown += page.lines.len() as u64;
        let offset = match page.next.filter(|_| !page.lines.is_empty()) {
            Some(next) if args.all => next,
            _ if args.all => return Ok(()),
            // Without --all, print the beginning of both sessions.
            _ if shown < of_a.min(PREVIEW_MESSAGES) => shown,
            _ if shown < of_a.min(PREVIEW_MESSAGES) + of_b.min(PREVIEW_MESSAGES) => {
                of_a + shown - of_a.min(PREVIEW_MESSAGES)
            }
            _ => break,
        };
        let most = if args.all {
            PAGE_SIZE
        } else {
            (of_a.min(PREVIEW_MESSAGES) + of_b.min(PREVIEW_MESSAGES)).saturating_sub(shown)
        };
        page = app.call::<Diff>(&asked(&a, &b, offset, Some(most)))?;
        if page.lines.is_empty() {
            break;
        }
    }
    let left = (of_a + of_b).saturating_sub(shown);
    if left > 0 {
        app.stderr.line(&pluralize(left, "more message"));
        app.stderr.hint("show everything: --all");
    }
    Ok(())
}

fn print_heading(out: &mut Stdout, diff: &DiffResult) -> Result<(), Error> {
    for (mark, style, session) in [("---", Style::Bad, &diff.a), ("+++", Style::Good, &diff.b)] {
        let told = session_title(out, session);
        let line = format!("{} {told}", out.style(style, mark));
        writeln!(out, "{line}")?;
    }
    let same = match diff.common {
        0 => "no common messages".to_owned(),
        1 => "the first message is the same".to_owned(),
        common => format!("the first {common} messages are the same"),
    };
    let parts = if diff.lines.is_empty() { "; neither has more messages" } else { "" };
    let line = format!("{same}{parts}");
    writeln!(out, "{}", out.style(Style::Faint, &line))
}

fn session_title(out: &mut Stdout, session: &Session) -> String {
    let saved = out.clock().local_date_time(session.header.saved_at);
    format!("{}  {saved}", format::session(out, session))
}

fn print_message(out: &mut Stdout, line: &DiffLine, whole: bool) -> Result<(), Error> {
    let (mark, style) = if line.side == Side::A { ("-", Style::Bad) } else { ("+", Style::Good) };
    let message = &line.message;
    let who = match message.role {
        Role::ToolResult => "result",
        role => role.as_str(),
    };
    let heading = format!("@@ {mark}{} {who} @@", line.number);
    writeln!(out, "{}", out.style(Style::Faint, &heading))?;
    let calls = message.tool_calls.iter();
    let calls =
        calls.map(|call| format!("→ {} {}", sanitize::one_line(&call.name), sanitize::one_line(call.params.get())));
    let content = sanitize::multi_line(message.content.trim_end()).into_owned();
    let all: Vec<String> = content.lines().map(str::to_owned).chain(calls).collect();
    let most = if whole { usize::MAX } else { PREVIEW_LINES };
    for text in all.iter().take(most) {
        let line = format!("{mark} {text}");
        let line = match out.width().filter(|_| !whole) {
            Some(width) => text::truncate(&line, width).into_owned(),
            None => line,
        };
        writeln!(out, "{}", out.style(style, &line))?;
    }
    if all.len() > most {
        let rest = format!("{mark} … {} more lines", all.len() - most);
        writeln!(out, "{}", out.style(Style::Faint, &rest))?;
    }
    Ok(())
}
