//! `chorusctl doctor --secrets`: finds secrets in what is stored.

use chorus_proto::command_text::add_target;
use chorus_proto::error::exit;
use chorus_proto::methods::doctor::{SecretPlace, SecretPlaceKind, Secrets, SecretsParams, SecretsResult};
use chorus_proto::shell_word::shell_word;

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::print_pages;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{group_digits, pluralize};
use crate::ui::{Cell, Column, Style, Table, sanitize};

/// Number of sessions that the hint names.
const NAMED_SESSIONS: usize = 4;

const COLUMNS: [Column; 5] = [
    Column::new("ID").whole(),
    Column::new("WHERE"),
    Column::new("NAME").flexible(),
    Column::new("MESSAGES").optional(),
    Column::new("SECRETS").flexible(),
];

/// Searches everything, prints where secrets are, and fails if there are any.
pub(super) fn run(app: &mut App) -> Result<(), Error> {
    let progress = ProgressBar::new("secrets".into(), &["reading"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, "nothing was changed; run the same command again"));
    let params = SecretsParams { agent: app.named_agent(), limit: None };
    let raw = app.call_with_progress::<Secrets>(&params, progress)?;
    let result: SecretsResult = parse_result(&raw)?;
    match app.stdout.format() {
        OutputFormat::Json => app.stdout.json_line(&raw)?,
        OutputFormat::Jsonl => print_pages::print_entries(&mut app.stdout, &raw, "places")?,
        OutputFormat::Text => print(app, &result)?,
    }
    app.stdout.flush()?;
    if app.stdout.format() == OutputFormat::Jsonl && (result.places.len() as u64) < result.total {
        app.stderr.warning(&format!("only the first {} of {} places", result.places.len(), result.total));
    }
    for text in &result.unread {
        app.stderr.warning(&format!("not searched: {}", sanitize::one_line(text)));
    }
    if result.total == 0 { Ok(()) } else { Err(Error::reported(exit::FAILED)) }
}

fn print(app: &mut App, result: &SecretsResult) -> Result<(), Error> {
    if result.total == 0 {
        return app.stdout.status_line(&format!("no secrets in {} places", group_digits(result.searched)));
    }
    let mut table = Table::new(COLUMNS);
    for place in &result.places {
        let id = shown_id(place).unwrap_or_default();
        table.add_row([
            Cell::new(Style::Id, id),
            kind_name(place.kind).into(),
            name(place).into(),
            messages(&place.messages).into(),
            secrets(place).into(),
        ]);
    }
    table.write(&mut app.stdout)?;
    if (result.places.len() as u64) < result.total {
        app.stdout.status_line(&format!("and {} more", group_digits(result.total - result.places.len() as u64)))?;
    }
    app.stdout.status_line(&format!(
        "{} of {} have secrets",
        group_digits(result.total),
        pluralize(result.searched, "place")
    ))?;
    app.stdout.flush()?;
    print_hints(app, &result.places);
    Ok(())
}

/// Returns what names it in commands. Daemons of earlier releases report only whole ids.
fn shown_id(place: &SecretPlace) -> Option<String> {
    let id = place.id?.to_string();
    let short = place.short_id.as_deref().map(sanitize::one_line);
    Some(short.unwrap_or_else(|| if place.kind == SecretPlaceKind::Session { id } else { id[..8].to_owned() }))
}

/// Says what removes the secrets, for each kind of place.
fn print_hints(app: &App, places: &[SecretPlace]) {
    let of = |kind: SecretPlaceKind| places.iter().filter(move |place| place.kind == kind);
    // Those of the first agent: a command is for one.
    let agent = of(SecretPlaceKind::Session).next().and_then(|place| place.agent.clone()).unwrap_or_default();
    let of_agent = of(SecretPlaceKind::Session).filter(|place| place.agent.as_deref() == Some(&*agent));
    let sessions: Vec<String> = of_agent.filter_map(shown_id).take(NAMED_SESSIONS).collect();
    if !sessions.is_empty() {
        let more = if of(SecretPlaceKind::Session).count() > sessions.len() { " …" } else { "" };
        app.stderr.hint(&format!(
            "replace them by copies without secrets: chorusctl --agent {} session scrub {}{more}",
            shell_word(&agent),
            sessions.join(" ")
        ));
    }
    if let Some(live) = of(SecretPlaceKind::Conversation).next() {
        let agent = shell_word(live.agent.as_deref().unwrap_or_default());
        let clear = add_target(&format!("chorusctl --agent {agent} context clear --save"), None, Some(&live.name));
        app.stderr.hint(&format!("save and end a live conversation, and then scrub what was saved: {clear}"));
    }
    if let Some(memory) = of(SecretPlaceKind::Memory).next() {
        let agent = shell_word(memory.agent.as_deref().unwrap_or_default());
        app.stderr.hint(&format!("correct an entry of the memory: chorusctl --agent {agent} memory list"));
    }
    if let Some(schedule) = of(SecretPlaceKind::Schedule).next() {
        let agent = shell_word(schedule.agent.as_deref().unwrap_or_default());
        app.stderr
            .hint(&format!("remove a schedule, and add it without secrets: chorusctl --agent {agent} schedule list"));
    }
    if of(SecretPlaceKind::Trash).next().is_some() {
        app.stderr.hint("delete what is in the trash: chorusctl trash empty");
    }
    app.stderr.hint("replace the secrets themselves, too: whoever could read these files may know them");
}

fn kind_name(kind: SecretPlaceKind) -> &'static str {
    match kind {
        SecretPlaceKind::Session => "saved",
        SecretPlaceKind::Conversation => "live",
        SecretPlaceKind::Memory => "memory",
        SecretPlaceKind::Schedule => "schedule",
        SecretPlaceKind::Trash => "trash",
        SecretPlaceKind::File => "file",
    }
}

fn name(place: &SecretPlace) -> String {
    let name = match place.kind {
        SecretPlaceKind::Memory => String::new(),
        _ => sanitize::one_line(&place.name),
    };
    match &place.agent {
        Some(agent) if name.is_empty() => sanitize::one_line(agent),
        Some(agent) => format!("{name} ({})", sanitize::one_line(agent)),
        None => name,
    }
}

/// Formats `3, 8, 12 …`.
fn messages(numbers: &[u64]) -> String {
    let shown: Vec<String> = numbers.iter().take(3).map(u64::to_string).collect();
    format!("{}{}", shown.join(", "), if numbers.len() > shown.len() { " …" } else { "" })
}

/// Formats `github-token 5f0c1a9e (2), password 11aa22bb`.
fn secrets(place: &SecretPlace) -> String {
    let describe = |secret: &chorus_proto::methods::session::SecretCount| {
        let times = if secret.count > 1 { format!(" ({})", secret.count) } else { String::new() };
        format!("{} {}{times}", sanitize::one_line(&secret.kind), sanitize::one_line(&secret.fingerprint))
    };
    let more = place.more_secrets.map(|more| format!("and {} more", group_digits(more)));
    place.secrets.iter().map(describe).chain(more).collect::<Vec<_>>().join(", ")
}
