//! `chorusctl doctor --size`: says what takes room on the disk.

use chorus_proto::methods::doctor::{Size, SizeOfCompression, SizeParams, SizePart, SizeResult};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::{format_bytes, group_digits, pluralize};
use crate::ui::{Column, Table, sanitize};

const PARTS: [Column; 3] =
    [Column::new("SIZE").align_right(), Column::new("FILES").align_right(), Column::new("WHAT").flexible()];
const AGENTS: [Column; 4] = [
    Column::new("SIZE").align_right(),
    Column::new("SAVED").align_right(),
    Column::new("CONVERSATIONS").align_right(),
    Column::new("AGENT").flexible(),
];

/// Bytes from which it is worth a hint that compression saves them.
const MIN_POSSIBLE_BYTES: u64 = 1 << 20;

/// Prints the parts of the home and the largest agents.
pub(super) fn run(app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Size>(&SizeParams {}, |app, result| {
        let SizeResult { home, bytes, parts, agents, agents_total, compression } = result;
        app.stdout.status_line(&format!("{} in {}", format_bytes(bytes), sanitize::one_line(&home)))?;
        let mut table = Table::new(PARTS);
        for part in &parts {
            table.add_row([
                format_bytes(part.bytes).into(),
                group_digits(part.files).into(),
                describe(&part.name).to_owned().into(),
            ]);
        }
        table.write(&mut app.stdout)?;
        if !agents.is_empty() {
            writeln!(app.stdout)?;
            let mut table = Table::new(AGENTS);
            for of in &agents {
                table.add_row([
                    format_bytes(of.bytes).into(),
                    format_bytes(of.sessions).into(),
                    group_digits(of.count).into(),
                    sanitize::one_line(&of.agent).into(),
                ]);
            }
            table.write(&mut app.stdout)?;
        }
        let more = agents_total - agents.len() as u64;
        if more > 0 {
            app.stdout.status_line(&format!("and {} more agents", group_digits(more)))?;
        }
        if let Some(SizeOfCompression { compressed, saved, .. }) = compression.as_ref().filter(|of| of.compressed > 0) {
            let count = pluralize(*compressed, "saved conversation");
            let verb = if *compressed == 1 { "is" } else { "are" };
            app.stdout.status_line(&format!("{count} {verb} compressed, which saves {}", format_bytes(*saved)))?;
        }
        app.stdout.flush()?;
        // Some compressed ones show that the key is set.
        print_hints(app, &parts, compression.filter(|of| of.compressed == 0).map_or(0, |of| of.possible));
        Ok(())
    })
}

/// Says how to free room, for the parts that can be made smaller.
fn print_hints(app: &App, parts: &[SizePart], possible: u64) {
    let has = |name: &str| parts.iter().any(|part| part.name == name && part.files > 0);
    if has("trash") {
        app.stderr.hint("empty the trash: chorusctl trash empty");
    }
    if has("sessions") {
        app.stderr.hint("move unused conversations to the trash: chorusctl session expire --unused-for 365d --dry-run");
    }
    if possible >= MIN_POSSIBLE_BYTES {
        app.stderr.hint(&format!(
            "compress unused conversations ({} if all were): chorusctl config set retention.sessions_compressed_after 30d",
            format_bytes(possible)
        ));
    }
}

/// Explains a part of the home. Parts that a later daemon names are shown as they are.
fn describe(name: &str) -> &str {
    match name {
        "sessions" => "saved conversations",
        "workspaces" => "workspaces of agents",
        "worktrees" => "git worktrees of conversations",
        "live" => "live conversations and events",
        "catalog" => "index of conversations, memory, usage, audit log",
        "index" => "search index (built again if it is deleted)",
        "embeddings" => "model and vectors of the search by meaning",
        "trash" => "trash",
        "tasks" => "output of background commands",
        "logs" => "log of the daemon",
        "cache" => "cache",
        "other" => "everything else",
        name => name,
    }
}
