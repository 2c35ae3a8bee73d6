//! The steps of the tour.

use serde_json::Value;

use super::temp_home::TempHome;
use crate::error::Error;
use crate::ui::{Stdout, Style};

/// Runs all steps.
pub(super) fn run(stage: &mut TempHome, out: &mut Stdout) -> Result<(), Error> {
    let home = stage.directory().display().to_string();
    writeln!(
        out,
        "{}",
        out.style(Style::Strong, "Chorus saves the conversations of AI agents and does not lose any.")
    )?;
    writeln!(out, "These commands run for real in a temporary directory that is deleted afterwards:\n{home}")?;
    import_step(stage, out)?;
    restore_step(stage, out)?;
    crash_step(stage, out)?;
    cleanup_step(stage, out)?;
    print_next_commands(out)
}

fn import_step(stage: &TempHome, out: &mut Stdout) -> Result<(), Error> {
    print_text(out, "Create an agent. The daemon starts automatically.")?;
    stage.run(out, &["agent", "init", "atlas"])?;
    print_text(
        out,
        "Mara has a conversation from another program, in which she and a model changed\ninvoice amounts from floats to exact numbers. Import it as a session of atlas.",
    )?;
    stage.run(out, &["import", "transcript.jsonl"])?;
    print_text(out, "List saved conversations, newest first.")?;
    stage.run(out, &["history"])
}

fn restore_step(stage: &TempHome, out: &mut Stdout) -> Result<(), Error> {
    print_text(out, "The next morning she continues where she left off. Every message and tool call\nis restored.")?;
    stage.run(out, &["restore", "latest"])?;
    stage.run(out, &["context", "append", "Morning! First the DATEV export, as promised."])?;
    stage.run(out, &["show", "--last", "3"])?;
    print_text(out, "Save a checkpoint. The conversation continues.")?;
    stage.run(out, &["save", "DATEV export first", "--tag", "billing"])?;
    stage.run(out, &["context", "append", "And ask Kenji to look at the 31 yen invoices."])
}

fn crash_step(stage: &TempHome, out: &mut Stdout) -> Result<(), Error> {
    let before = stage.run_json(&["context", "show"])?;
    print_text(out, "The last message is not in a saved session yet. Now kill the daemon:")?;
    stage.kill_daemon(out)?;
    print_text(out, "The next command starts a new daemon. No message is missing.")?;
    stage.run(out, &["show", "--last", "2"])?;
    let after = stage.run_json(&["context", "show"])?;
    let kept = compare_messages(&before, &after)?;
    print_text(out, &format!("Compared with the state before the crash: {kept} of {kept} messages are identical."))
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
    print_text(out, "Done for today: save and start fresh.")?;
    stage.run(out, &["context", "clear", "--save"])?;
    stage.run(out, &["history"])?;
    print_text(out, "Restore any of them by number, ID or name.")?;
    stage.run(out, &["restore", "2"])?;
    stage.run(out, &["status"])?;
    print_text(out, "Delete the agent. It is moved to the trash.")?;
    stage.run(out, &["agent", "destroy", "atlas", "--yes"])?;
    stage.run(out, &["daemon", "stop"])
}

fn print_next_commands(out: &mut Stdout) -> Result<(), Error> {
    writeln!(out, "\n{}", out.style(Style::Strong, "Next steps"))?;
    let lines = [
        ("chorusctl agent init NAME", "create an agent"),
        ("chorusctl import", "import your conversations"),
        ("chorusctl context append TEXT", "add a message from a shell or script"),
        ("chorusctl history", "list saved conversations"),
        ("chorusctl --help", "list all commands"),
    ];
    for (command, what) in lines {
        writeln!(out, "  {command:<34}{what}")?;
    }
    Ok(())
}

fn print_text(out: &mut Stdout, text: &str) -> Result<(), Error> {
    writeln!(out, "\n{text}")
}
