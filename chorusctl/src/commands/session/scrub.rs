//! `chorusctl session scrub`: replaces sessions by copies without secrets.

use chorus_proto::command_text::add_target;
use chorus_proto::error::exit;
use chorus_proto::methods::session::{LiveConversation, Scrub, ScrubParams, ScrubResult, SecretCount};
use serde_json::value::RawValue;

use super::purge;
use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;
use crate::ui::{Style, confirm, sanitize, terminal};

/// Replace saved conversations by copies without secrets
///
/// Writes a copy in which each secret is `[redacted:KIND:FINGERPRINT]`, and then permanently deletes the original: its file, its history entry, its
/// copies in the trash and its data in the databases. This cannot be undone. An imported conversation is continued by the copy.
///
/// Backups, exports and the transcripts of other programs are not changed, and neither is a live conversation that was loaded from it. `chorusctl
/// doctor --secrets` finds conversations with secrets.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl session scrub 9f1c27d4 --dry-run    only name the secrets\n  \
    chorusctl session scrub 9f1c27d4 4b2d01aa")]
pub struct Args {
    /// Saved conversations
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    /// Only name the secrets
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let mut failed = None;
    let several = args.sessions.len() > 1;
    if !args.yes && !args.dry_run && !terminal::can_prompt() {
        return Err(confirm::no_terminal_error("session scrub"));
    }
    let mut is_any_scrubbed = false;
    for session in &args.sessions {
        match scrub(session, &args, app) {
            Ok(scrubbed) => is_any_scrubbed |= scrubbed,
            Err(failure) if several && failure.exit_status() != exit::NO_DAEMON && !failure.is_stdout_closed() => {
                failed.get_or_insert(failure.exit_status());
                failure.with_context(session).print(app.stderr);
            }
            Err(failure) => return Err(failure),
        }
    }
    if is_any_scrubbed && app.stdout.format() == OutputFormat::Text {
        app.stderr.hint(
            "replace the secrets themselves, too: backups, exports and transcripts of other programs may still have them",
        );
    }
    failed.map_or(Ok(()), |status| Err(Error::reported(status)))
}

/// Scrubs one session. Returns true if it had secrets and was replaced.
fn scrub(session: &str, args: &Args, app: &mut App) -> Result<bool, Error> {
    let params = ScrubParams {
        conversation: app.conversation(),
        agent: app.agent(),
        session: session.to_owned(),
        own: app.global.agent.is_none(),
        dry_run: args.dry_run,
    };
    if !args.yes && !args.dry_run {
        let found = app.call::<Scrub>(&ScrubParams { dry_run: true, ..params.clone() })?;
        if !found.secrets.is_empty() {
            let question = format!(
                "Replace {} by a copy without {}, and permanently delete it?",
                shown_id(&found),
                count(&found.secrets)
            );
            confirm::ask("session scrub", &question)?;
        }
    }
    let raw = app.call_raw::<Scrub>(&params)?;
    let result: ScrubResult = parse_result(&raw)?;
    print(&raw, &result, args.dry_run, app)?;
    Ok(result.scrubbed.is_some())
}

/// Returns an id that no other session has. Daemons of earlier releases report only the whole one.
fn shown_id(result: &ScrubResult) -> String {
    result.short_id.as_deref().map_or_else(|| result.id.to_string(), sanitize::one_line)
}

fn print(raw: &RawValue, result: &ScrubResult, dry_run: bool, app: &mut App) -> Result<(), Error> {
    if app.stdout.format() != OutputFormat::Text {
        return app.stdout.json_line(raw);
    }
    // The name may be made of a secret.
    let name = shown_id(result);
    if let (true, Some(copy)) = (result.secrets.is_empty(), &result.scrubbed) {
        let (id, copy) = (sanitize::one_line(&copy.short_id), sanitize::one_line(&copy.header.session_id));
        let id = app.stdout.style(Style::Id, &id).to_string();
        app.stdout.status_line(&format!("{id}  {copy}  replaces {name}; an interrupted scrub was completed"))?;
        app.stdout.flush()?;
        if result.erasing {
            purge::warn_erasing(app);
        }
        return Ok(());
    }
    if result.secrets.is_empty() {
        return app.stdout.status_line(&format!("{name} has no secrets; it is unchanged"));
    }
    let place = format!("{} in {}", count(&result.secrets), pluralize(result.messages, "message"));
    match &result.scrubbed {
        Some(copy) => {
            let id = app.stdout.style(Style::Id, &sanitize::one_line(&copy.short_id)).to_string();
            let copy = sanitize::one_line(&copy.header.session_id);
            app.stdout.status_line(&format!("{id}  {copy}  replaces {name}, which had {place}"))?;
        }
        None => app.stdout.status_line(&format!("{name} has {place}"))?,
    }
    for SecretCount { kind, fingerprint, count } in &result.secrets {
        let times = if *count == 1 { String::new() } else { format!("  {count} times") };
        writeln!(app.stdout, "  {}  {}{times}", sanitize::one_line(kind), sanitize::one_line(fingerprint))?;
    }
    app.stdout.flush()?;
    if !dry_run {
        if result.erasing {
            purge::warn_erasing(app);
        }
        for LiveConversation { agent, conversation } in &result.live_in {
            let named = conversation.as_ref().map_or_else(String::new, |name| format!(" {name}"));
            app.stderr.warning(&format!("the live conversation{named} of {agent} still contains its messages"));
            let command = format!("chorusctl --agent {agent} context clear --save");
            app.stderr.hint(&add_target(&command, None, conversation.as_deref()));
        }
    }
    Ok(())
}

fn count(secrets: &[SecretCount]) -> String {
    pluralize(secrets.iter().map(|secret| secret.count).sum(), "secret")
}
