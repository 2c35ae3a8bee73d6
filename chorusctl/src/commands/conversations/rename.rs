//! `chorusctl conversations rename`: gives a conversation another name.

use chorus_proto::methods::conversations::{Rename, RenameParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Give a conversation another name
///
/// Saved sessions keep the name that it had then. main keeps its name.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Conversation
    #[arg(value_name = "OLD", id = "old_name")]
    old: String,
    /// New name
    #[arg(value_name = "NEW", id = "new_name")]
    new: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = RenameParams { agent: app.agent(), conversation: args.old, name: args.new };
    app.call_and_print::<Rename>(&params, |app, result| {
        let [old, new] = [&result.old_name, &result.conversation.name].map(|name| sanitize::one_line(name));
        let line = format!("renamed {old} to {}", app.stdout.style(Style::Strong, &new));
        app.stdout.status_line(&line)
    })
}
