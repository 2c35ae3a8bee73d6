//! `chorusctl session tag`.

use chorus_proto::methods::session::{Tag, TagParams, TagResult};

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::safe;

/// Put tags on a saved conversation
///
/// `chorusctl context history --tag TAG` finds it by them.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    named: Named,
}

/// A session and tags.
#[derive(Debug, clap::Args)]
pub struct Named {
    /// The session
    session: String,
    /// The tags
    #[arg(required = true, value_name = "TAG")]
    tags: Vec<String>,
}

impl Named {
    /// As the daemon is asked.
    #[must_use]
    pub fn params(self, app: &App) -> TagParams {
        TagParams { agent: app.agent(), session: self.session, own: app.global.agent.is_none(), tag: self.tags }
    }
}

/// Tags it.
///
/// # Errors
/// Why it has no tag.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = args.named.params(app);
    app.answer::<Tag>(&params, told)
}

/// Tells which tags a session has now.
///
/// # Errors
/// [`Failure`] when standard output does not take it.
pub fn told(app: &mut App, result: TagResult) -> Result<(), Failure> {
    let tags: Vec<_> = result.session.header.tags.iter().map(|tag| format!("#{}", safe::one_line(tag))).collect();
    let tags = if tags.is_empty() { "no tags".to_owned() } else { tags.join(" ") };
    let line = format!("{}  {tags}", describe::name(&app.out, &result.session));
    app.out.done(&line)
}
