//! What the tour tells.

use serde_json::Value;

use super::stage::Stage;
use crate::error::Failure;
use crate::ui::{Out, Style};

/// Tells the story on `stage`.
///
/// # Errors
/// The step that failed.
pub fn tell(stage: &mut Stage, out: &mut Out) -> Result<(), Failure> {
    let home = stage.directory().display().to_string();
    writeln!(out, "{}", out.paint(Style::Strong, "Chorus keeps the conversations of AI agents, and never loses one."))?;
    writeln!(out, "Every command below is really run, in a home that is gone afterwards:\n{home}")?;
    bring_one_along(stage, out)?;
    go_on(stage, out)?;
    pull_the_plug(stage, out)?;
    tidy_up(stage, out)?;
    what_next(out)
}

fn bring_one_along(stage: &Stage, out: &mut Out) -> Result<(), Failure> {
    say(out, "First an agent. The daemon that keeps it starts by itself.")?;
    stage.run(out, &["agent", "init", "atlas"])?;
    say(
        out,
        "Mara has a conversation from another program: she and a model moved invoice\namounts from floats to exact numbers. It becomes a session of atlas.",
    )?;
    stage.run(out, &["session", "import", "transcript.jsonl"])?;
    say(out, "Saved conversations are listed, newest first.")?;
    stage.run(out, &["context", "history"])
}

fn go_on(stage: &Stage, out: &mut Out) -> Result<(), Failure> {
    say(out, "The next morning she goes on where she stopped: every message and tool call is\nback, as it was.")?;
    stage.run(out, &["context", "restore", "latest"])?;
    stage.run(out, &["context", "append", "Morning! First the DATEV export, as promised."])?;
    stage.run(out, &["context", "show", "--last", "3"])?;
    say(out, "A save is a checkpoint: it is on disk, and the conversation goes on.")?;
    stage.run(out, &["context", "save", "DATEV export first", "--tag", "billing"])?;
    stage.run(out, &["context", "append", "And ask Kenji to look at the 31 yen invoices."])
}

fn pull_the_plug(stage: &Stage, out: &mut Out) -> Result<(), Failure> {
    let before = stage.ask(&["context", "show"])?;
    say(out, "That last message is in no session yet. Now the worst that can happen:")?;
    stage.kill_daemon(out)?;
    say(out, "The next command starts a new daemon, and nothing is missing.")?;
    stage.run(out, &["context", "show", "--last", "2"])?;
    let after = stage.ask(&["context", "show"])?;
    let kept = compare(&before, &after)?;
    say(out, &format!("Compared with the state before: {kept} of {kept} messages, not one byte changed."))
}

/// The number of messages, which must be the same on both sides.
fn compare(before: &Value, after: &Value) -> Result<usize, Failure> {
    let messages = |shown: &Value| shown["messages"].as_array().cloned().unwrap_or_default();
    let (before, after) = (messages(before), messages(after));
    if before.is_empty() || before != after {
        let numbers = format!("{} messages before, {} after", before.len(), after.len());
        return Err(Failure::failed(format!("the tour failed: kill -9 changed the conversation ({numbers})")));
    }
    Ok(after.len())
}

fn tidy_up(stage: &Stage, out: &mut Out) -> Result<(), Failure> {
    say(out, "Enough for today: save, and start afresh.")?;
    stage.run(out, &["context", "clear", "--save"])?;
    stage.run(out, &["context", "history"])?;
    say(out, "Any of them comes back, by its number, its id or its name.")?;
    stage.run(out, &["context", "restore", "2"])?;
    stage.run(out, &["status"])?;
    say(out, "Even an agent that is destroyed only goes to the trash.")?;
    stage.run(out, &["agent", "destroy", "atlas", "--yes"])?;
    stage.run(out, &["daemon", "stop"])
}

fn what_next(out: &mut Out) -> Result<(), Failure> {
    writeln!(out, "\n{}", out.paint(Style::Strong, "What next"))?;
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

fn say(out: &mut Out, text: &str) -> Result<(), Failure> {
    writeln!(out, "\n{text}")
}
