//! `chorusctl approvals list`.

use chorus_proto::methods::approvals::{List, ListParams};

use super::shown;
use crate::app::App;
use crate::error::Failure;
use crate::reply;
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
    let params = ListParams { agent: app.global.agent.clone(), all: args.all };
    if app.out.format() == Format::Jsonl {
        let raw = app.call_raw::<List>(&params)?;
        return reply::lines(&mut app.out, &raw, "approvals");
    }
    app.answer::<List>(&params, |app, found| {
        if found.approvals.is_empty() {
            app.notes.line("nothing waits for an answer");
        }
        let width = app.out.width();
        for (at, approval) in found.approvals.iter().enumerate() {
            if at > 0 {
                app.out.text("\n")?;
            }
            let clock = app.out.clock();
            let (head, rest) = shown::lines(approval, width, clock);
            writeln!(app.out, "{}", app.out.paint(crate::ui::Style::Strong, &head))?;
            rest.iter().try_for_each(|line| writeln!(app.out, "{line}"))?;
        }
        Ok(())
    })
}
