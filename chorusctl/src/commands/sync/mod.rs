//! `chorusctl sync`: brings the saved conversations of two machines together, over ssh.

mod inventory;
mod remote;
mod transfer;

use std::collections::HashSet;

use chorus_proto::methods::import::ImportOutcome;
use chorus_proto::{Client, ErrorKind};
use serde_json::json;
use serde_json::value::to_raw_value;
use uuid::Uuid;

use self::inventory::{Entry, Inventory};
use self::remote::{GREETING, Remote};
use self::transfer::copy_session;
use crate::app::App;
use crate::commands::daemon::dial_stdio;
use crate::commands::project;
use crate::error::Error;
use crate::ui::Stderr;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;

/// Exchange saved conversations with another machine over ssh
///
/// Copies to each machine the saved conversations that only the other one has, and adds messages to those that have grown there. If both have
/// changed, each machine gets the other's version as a new revision. Nothing is deleted, and live conversations are not copied.
///
/// Chorus must be installed on both. Your own ssh is used, with its configuration, keys and questions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl sync mara@desk                     all conversations\n  \
    chorusctl sync desk --project ~/shop         those of one project\n  \
    chorusctl sync desk --dry-run                only count them\n  \
    chorusctl sync desk --rsh 'ssh -p 2222'      with options of ssh")]
pub struct Args {
    /// The other machine, as for ssh: [USER@]HOST
    #[arg(id = "machine", value_name = "HOST", required_unless_present = "serve")]
    host: Option<String>,
    /// Only conversations held in this directory or below it, by its path on either machine (`.` is the current one)
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// Only count what would be copied
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Command to use instead of ssh
    #[arg(long, value_name = "COMMAND", default_value = "ssh", hide_default_value = true)]
    rsh: String,
    /// chorusctl on the other machine, if it is not in PATH there
    #[arg(long, value_name = "PATH", default_value = "chorusctl", hide_default_value = true)]
    remote_command: String,
    /// The other end: connects standard input and output to the daemon
    #[arg(long, hide = true, conflicts_with_all = ["machine", "project", "dry_run"])]
    serve: bool,
}

/// The numbers of copied sessions.
#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    new: u64,
    grown: u64,
    revisions: u64,
    messages: u64,
}

/// One direction: the machine that has the sessions, and the one that gets them.
struct Direction<'a> {
    from: &'a mut Client,
    to: &'a mut Client,
    /// The label of the progress bar.
    label: &'static [&'static str; 1],
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    app.use_this_machine("sync")?;
    let Some(host) = args.host.as_deref().filter(|_| !args.serve) else {
        return dial_stdio::dial(app, format!("{GREETING}\n").as_bytes());
    };
    app.client()?;
    let mut remote = Remote::connect(app, host, &args.rsh, &args.remote_command)?;
    let project = args.project.as_deref().map(project::absolute);
    let here = Inventory::read(app.client()?, project.as_deref())?;
    let there = Inventory::read(&mut remote.client, project.as_deref()).map_err(|error| remote.explain(error))?;
    let outgoing = here.missing_in(&there, &HashSet::new());
    if args.dry_run {
        let incoming = there.missing_in(&here, &HashSet::new());
        return print_counts(app, host, outgoing.len(), incoming.len());
    }
    let quiet = (app.global.quiet, app.stderr);
    let direction = Direction { from: app.client()?, to: &mut remote.client, label: &["sending"] };
    let (sent, settled) = copy_all(direction, &outgoing, &there, quiet).map_err(|error| remote.explain(error))?;
    let incoming = there.missing_in(&here, &settled);
    let direction = Direction { from: &mut remote.client, to: app.client()?, label: &["receiving"] };
    let (received, _) = copy_all(direction, &incoming, &here, quiet).map_err(|error| remote.explain(error))?;
    print_totals(app, host, sent, received)
}

/// Copies sessions. Returns the totals, and the sessions of the receiver that have everything now.
fn copy_all(
    direction: Direction<'_>,
    sessions: &[&Entry],
    receiver: &Inventory,
    (quiet, stderr): (bool, Stderr),
) -> Result<(Totals, HashSet<Uuid>), Error> {
    let (mut totals, mut settled) = (Totals::default(), HashSet::new());
    let mut progress = ProgressBar::new("sync".to_owned(), direction.label, !quiet)
        .with_interruption(Interruption::explain(stderr, "what is copied stays; the same command copies the rest"));
    for (done, entry) in sessions.iter().enumerate() {
        progress.update(done as u64, sessions.len() as u64, "conversations");
        let agent = receiver.agent_for(entry);
        let result = match copy_session(direction.from, direction.to, entry.id, agent) {
            // Deleted since it was listed.
            Err(error) if error.is_kind(ErrorKind::SessionNotFound) => continue,
            result => result?,
        };
        for (session, imported) in result.imported() {
            totals.messages += imported.added;
            match imported.outcome {
                ImportOutcome::New => totals.new += 1,
                ImportOutcome::Grown => {
                    totals.grown += 1;
                    settled.insert(session.header.id);
                }
                ImportOutcome::Revision => totals.revisions += 1,
                ImportOutcome::UpToDate => {}
            }
        }
    }
    progress.finish();
    Ok((totals, settled))
}

fn print_counts(app: &mut App, host: &str, outgoing: usize, incoming: usize) -> Result<(), Error> {
    if app.stdout.format() != OutputFormat::Text {
        return print_json(app, &json!({"host": host, "to_send": outgoing, "to_receive": incoming}));
    }
    let counted = |count: usize| pluralize(count as u64, "conversation");
    app.stdout.status_line(&format!("would send {} and receive {}", counted(outgoing), counted(incoming)))
}

fn print_totals(app: &mut App, host: &str, sent: Totals, received: Totals) -> Result<(), Error> {
    if app.stdout.format() != OutputFormat::Text {
        let fields = |totals: Totals| json!({"new": totals.new, "grown": totals.grown, "revisions": totals.revisions, "messages": totals.messages});
        return print_json(app, &json!({"host": host, "sent": fields(sent), "received": fields(received)}));
    }
    match (describe(sent), describe(received)) {
        (None, None) => app.stdout.status_line("up to date"),
        (sent, received) => {
            let [sent, received] = [sent, received].map(|text| text.unwrap_or_else(|| "nothing".to_owned()));
            app.stdout.status_line(&format!("sent {sent}; received {received}"))
        }
    }
}

/// Returns the totals in words; `None` if nothing was copied.
fn describe(totals: Totals) -> Option<String> {
    let parts = [(totals.new, "new"), (totals.grown, "grown"), (totals.revisions, "changed")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    (!parts.is_empty()).then(|| format!("{} ({})", parts.join(", "), pluralize(totals.messages, "message")))
}

fn print_json(app: &mut App, value: &serde_json::Value) -> Result<(), Error> {
    let raw = to_raw_value(value).map_err(|error| Error::failed(error.to_string()))?;
    app.stdout.json_line(&raw)
}
