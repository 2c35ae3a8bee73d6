//! `chorusctl conversations new`: creates a conversation.

use chorus_proto::methods::conversations::{New, NewParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Create a conversation
///
/// It is empty until the first message. A closed conversation with this name is opened again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name: lowercase letters, digits, - and _
    name: String,
    /// Title [default: that of its newest session]
    #[arg(long)]
    title: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = NewParams { agent: app.agent(), name: args.name, title: args.title, origin: None };
    app.call_and_print::<New>(&params, |app, result| {
        let name = sanitize::one_line(&result.conversation.name);
        let shown = app.stdout.style(Style::Strong, &name);
        let line =
            if result.created { format!("created conversation {shown}") } else { format!("opened {shown} again") };
        app.stdout.status_line(&line)?;
        app.stdout.status_line(&format!("  use it: chorusctl -C {name} chat, or: chorusctl conversations use {name}"))
    })
}
