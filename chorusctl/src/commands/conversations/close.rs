//! `chorusctl conversations close`: saves and closes a conversation.

use chorus_proto::methods::conversations::{Close, CloseParams, ClosedWorktree, List, ListParams};
use uuid::Uuid;

use crate::app::App;
use crate::commands::format;
use crate::conversation_select::{MAIN, SELECTED};
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;
use crate::ui::{Style, sanitize};

/// Save and close a conversation
///
/// Its messages are saved as a session and cleared. It is not listed any more; a message opens it again. main is always open. Its git worktree, if
/// it has one, is removed after a commit of what is not committed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Conversation [default: the one that commands use]
    name: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let conversation = args.name.or_else(|| app.conversation()).unwrap_or_else(|| SELECTED.to_owned());
    let used = if app.stdout.format() == OutputFormat::Text { selected(app)? } else { None };
    let params = CloseParams { agent: app.agent(), conversation };
    app.call_and_print::<Close>(&params, |app, result| {
        let name = sanitize::one_line(&result.conversation.name);
        let line = format!("closed {}", app.stdout.style(Style::Strong, &name));
        app.stdout.status_line(&line)?;
        if used == Some(result.conversation.id) {
            app.stdout.status_line("commands use main again")?;
        }
        for line in result.worktree.as_ref().map(|worktree| worktree_lines(worktree, &name)).unwrap_or_default() {
            app.stdout.status_line(&line)?;
        }
        let Some(session) = result.saved else { return Ok(()) };
        let line = format!("saved {}", format::session(&app.stdout, &session));
        app.stdout.status_line(&line)?;
        let short_id = sanitize::one_line(&session.short_id);
        app.stdout.status_line(&format!("  continue it: chorusctl -C {name} restore {short_id}"))
    })
}

/// Returns the conversation that was set with `conversations use`; `None` if it is `main`.
fn selected(app: &mut App) -> Result<Option<Uuid>, Error> {
    let list = ListParams { agent: app.agent(), ..ListParams::default() };
    let conversations = app.call::<List>(&list)?.conversations;
    Ok(conversations.iter().find(|one| one.selected && one.name != MAIN).map(|one| one.id))
}

/// Says what became of the conversation's git worktree.
fn worktree_lines(worktree: &ClosedWorktree, name: &str) -> Vec<String> {
    let [branch, directory] = [&worktree.branch, &worktree.directory].map(|text| sanitize::one_line(text));
    if let Some(why) = &worktree.kept {
        return vec![
            format!("kept the git worktree {directory}: {}", sanitize::one_line(why)),
            format!("  when that is fixed: chorusctl -C {name} conversations close"),
        ];
    }
    let mut lines = Vec::new();
    if worktree.committed {
        lines.push(format!("committed its pending changes to {branch}"));
    }
    lines.push(match worktree.branch_deleted {
        true => "removed its git worktree and its branch, which is merged".to_owned(),
        false => "removed its git worktree".to_owned(),
    });
    if worktree.unmerged_commits > 0 {
        let commits = pluralize(worktree.unmerged_commits, "commit");
        lines.push(format!("kept the branch {branch}: {commits} not merged"));
        lines.push(format!("  merge it: chorusctl -C {name} conversations merge"));
    }
    lines
}
