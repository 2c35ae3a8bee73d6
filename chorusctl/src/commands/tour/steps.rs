//! The steps of the tour.

use serde_json::Value;

use super::temp_home::TempHome;
use crate::error::Error;
use crate::ui::{Stdout, Style};

/// Runs all steps.
pub(super) fn run(stage: &mut TempHome, out: &mut Stdout) -> Result<(), Error> {
    let home = stage.directory().display().to_string();
    writeln!(out, "{}", out.style(Style::Strong, "Chorus keeps the conversations of AI agents, and never loses one."))?;
    writeln!(out, "Every command below is really run, in a home that is gone afterwards:\n{home}")?;
    import_step(stage, out)?;
    restore_step(stage, out)?;
    crash_step(stage, out)?;
    cleanup_step(stage, out)?;
    print_next_commands(out)
}

fn import_step(stage: &TempHome, out: &mut Stdout) -> Result<(), Error> {
    print_text(out, "First an agent. The daemon that keeps it starts by itself.")?;
    stage.run(out, &["agent", "init", "atlas"])?;
    print_text(
        out,
        "Mara has a conversation from another program: she and a model moved invoice\namounts from floats to exact numbers. It becomes a session of atlas.",
    )?;
    stage.run(out, &["session", "import", "transcript.jsonl"])?;
    print_text(out, "Saved conversations are listed, newest first.")?;
    stage.run(out, &["context", "history"])
}

fn restore_step(stage: &TempHome, out: &mut Stdout) -> Result<(), Error> {
    print_text(
        out,
        "The next morning she goes on where she stopped: every message and tool call is\nback, as it was.",
    )?;
    stage.run(out, &["context", "restore", "latest"])?;
    stage.run(out, &["context", "append", "Morning! First the DATEV export, as promised."])?;
    stage.run(out, &["context", "show", "--last", "3"])?;
    print_text(out, "A save is a checkpoint: it is on disk, and the conversation goes on.")?;
    stage.run(out, &["context", "save", "DATEV export first", "--tag", "billing"])?;
    stage.run(out, &["context", "append", "And ask Kenji to look at the 31 yen invoices."])
}

fn crash_step(stage: &TempHome, out: &mut Stdout) -> Result<(), Error> {
    let before = stage.run_json(&["context", "show"])?;
    print_text(out, "That last message is in no session yet. Now the worst that can happen:")?;
    stage.kill_daemon(out)?;
    print_text(out, "The next command starts a new daemon, and nothing is missing.")?;
    stage.run(out, &["context", "show", "--last", "2"])?;
    let after = stage.run_json(&["context", "show"])?;
    let kept = compare_messages(&before, &after)?;
    print_text(out, &format!("Compared with the state before: {kept} of {kept} messages, not one byte changed."))
}

/// Returns the number of messages, which must be the same on both sides.
fn compare_messages(before: &Value, after: &Value) -> Result<usize, Error> {
    let messages = |shown: &Value| shown["messages"].as_array().cloned().unwrap_or_default();
    let (before, after) = (messages(before), messages(after));
    if before.is_empty() || before != after {
        let numbers = format!("{} messages before, {} after", before.len(), after.len());
        return Err(Error::failed(format!("the tour failed: kill -9 changed the conversation ({numbers})")));
    }
    Ok(after.len())
}

fn cleanup_step(stage: &TempHome, out: &mut Stdout) -> Result<(), Error> {
    print_text(out, "Enough for today: save, and start afresh.")?;
    stage.run(out, &["context", "clear", "--save"])?;
    stage.run(out, &["context", "history"])?;
    print_text(out, "Any of them comes back, by its number, its id or its name.")?;
    stage.run(out, &["context", "restore", "2"])?;
    stage.run(out, &["status"])?;
    print_text(out, "Even an agent that is destroyed only goes to the trash.")?;
    stage.run(out, &["agent", "destroy", "atlas", "--yes"])?;
    stage.run(out, &["daemon", "stop"])
}

fn print_next_commands(out: &mut Stdout) -> Result<(), Error> {
    writeln!(out, "\n{}", out.style(Style::Strong, "What next"))?;
    let lines = [
        ("chorusctl agent init NAME", "make an agent of your own"),
        ("chorusctl session import FILE..", "bring your conversations along"),
        ("chorusctl context append TEXT", "add a message, from any shell or script"),
        ("chorusctl context history", "find what was saved"),
        ("chorusctl COMMAND --help", "everything else"),
    ];
    for (command, what) in lines {
        writeln!(out, "  {command:<34}{what}")?;
    }
    Ok(())
}

fn print_text(out: &mut Stdout, text: &str) -> Result<(), Error> {
    writeln!(out, "\n{text}")
}
