//! `chorusctl session tag`: adds tags to a session.

use chorus_proto::methods::session::{Tag, TagParams, TagResult};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::sanitize;

/// Add tags to a saved conversation
///
/// `chorusctl history --tag TAG` lists the sessions with a tag.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    named: SessionTags,
}

/// A session and tags.
#[derive(Debug, clap::Args)]
pub struct SessionTags {
    /// Saved conversation
    session: String,
    /// Tags
    #[arg(required = true, value_name = "TAG")]
    tags: Vec<String>,
}

impl SessionTags {
    /// Builds the request parameters.
    #[must_use]
    pub fn params(self, app: &App) -> TagParams {
        TagParams {
            conversation: app.conversation(),
            agent: app.agent(),
            session: self.session,
            own: app.global.agent.is_none(),
            tag: self.tags,
        }
    }
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = args.named.params(app);
    app.call_and_print::<Tag>(&params, print_tags)
}

/// Prints the tags that a session has now.
pub fn print_tags(app: &mut App, result: TagResult) -> Result<(), Error> {
    let tags: Vec<_> = result.session.header.tags.iter().map(|tag| format!("#{}", sanitize::one_line(tag))).collect();
    let tags = if tags.is_empty() { "no tags".to_owned() } else { tags.join(" ") };
    let line = format!("{}  {tags}", format::session_name(&app.stdout, &result.session));
    app.stdout.status_line(&line)
}
