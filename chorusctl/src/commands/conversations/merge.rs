//! `chorusctl conversations merge`: merges the branch of a conversation.

use chorus_proto::methods::conversations::{Merge, MergeParams};

use crate::app::App;
use crate::conversation_select::SELECTED;
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Style, sanitize};

/// Merge a conversation's git branch into the workspace
///
/// For agents with the setting `workspace` = worktree. Uncommitted changes of the conversation are committed first. If both sides changed the
/// same lines, nothing is changed and the files are listed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Conversation [default: the one that commands use]
    name: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let conversation = args.name.or_else(|| app.conversation()).unwrap_or_else(|| SELECTED.to_owned());
    let params = MergeParams { agent: app.agent(), conversation };
    app.call_and_print::<Merge>(&params, |app, merged| {
        let [name, into] = [&merged.conversation.name, &merged.into].map(|text| sanitize::one_line(text));
        if merged.committed {
            app.stdout.status_line(&format!("committed the pending changes of {name}"))?;
        }
        if merged.commits == 0 {
            return app.stdout.status_line(&format!("nothing to merge: {into} has all commits of {name}"));
        }
        let what = format!(
            "merged {} into {into}: {}, {}, +{} -{} lines",
            app.stdout.style(Style::Strong, &name),
            pluralize(merged.commits, "commit"),
            pluralize(merged.files, "file"),
            merged.insertions,
            merged.deletions
        );
        app.stdout.status_line(&what)
    })
}
