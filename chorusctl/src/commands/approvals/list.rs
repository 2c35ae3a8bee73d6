//! `chorusctl approvals list`.

use chorus_proto::methods::approvals::{Approval, List, ListParams};

use super::shown;
use crate::app::App;
use crate::error::Failure;
use crate::reply;
use crate::ui::Style;
use crate::ui::out::Format;

/// Show what waits for an answer; the same as no command
///
/// Each action is shown whole, with every character in it that is not seen otherwise made visible, and why it is asked about. With
/// --agent only those of that agent.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// The last hundred that were decided, too
    #[arg(long)]
    all: bool,
}

/// Shows them.
///
/// # Errors
/// Why they cannot be shown.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    // As in `status`, the agent of the current directory narrows nothing down.
    let first = ListParams { agent: app.global.agent.clone(), all: args.all, ..ListParams::default() };
    if app.out.format() != Format::Text {
        let following = |offset| ListParams { offset: Some(offset), ..first.clone() };
        return reply::whole::<List, _>(app, "approvals", &first, following);
    }
    let (mut some, mut next) = (false, Some(0));
    while let Some(offset) = next {
        let page = app.call::<List>(&ListParams { offset: Some(offset), ..first.clone() })?;
        for approval in &page.approvals {
            if std::mem::replace(&mut some, true) {
                app.out.text("\n")?;
            }
            text(approval, app)?;
        }
        next = page.next;
    }
    if !some {
        app.notes.line("nothing waits for an answer");
    }
    Ok(())
}

fn text(approval: &Approval, app: &mut App) -> Result<(), Failure> {
    let (head, rest) = shown::lines(approval, app.out.width(), app.out.clock());
    writeln!(app.out, "{}", app.out.paint(Style::Strong, &head))?;
    rest.iter().try_for_each(|line| writeln!(app.out, "{line}"))
}
