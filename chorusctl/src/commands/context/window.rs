//! `chorusctl context show --window`: what the next call of the model would be sent.

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::{MendKind, PieceKind, Window, WindowBudget};

use super::compact;
use crate::app::App;
use crate::commands::transcript::{Transcript, body};
use crate::error::Failure;
use crate::ui::words::{self, count, count_tokens};
use crate::ui::{Column, Out, Style, Table, safe};

/// Shows it.
///
/// # Errors
/// Why it cannot be shown.
pub fn run(app: &mut App) -> Result<(), Failure> {
    let params = ShowParams { agent: app.agent(), window: true, ..ShowParams::default() };
    app.answer::<Show>(&params, |app, result| {
        let Some(window) = result.window else {
            return Err(Failure::failed("the daemon shows no window").hint("restart it: `chorusctl daemon restart`"));
        };
        if let Some(receipt) = &window.compacts {
            let told = compact::told(receipt, false);
            app.notes.line(&format!("the next call compacts first, and this is shown as rules do it: {told}"));
        }
        let model = window.model.as_deref().map_or("no model".into(), safe::one_line);
        let agent = safe::one_line(&result.agent_name);
        writeln!(app.out, "{} · next request to {model}", app.out.paint(Style::Strong, &agent))?;
        parts(&mut app.out, &window)?;
        costs(&mut app.out, &window.budget, window.messages.len() as u64)
    })
}

fn parts(out: &mut Out, window: &Window) -> Result<(), Failure> {
    for piece in &window.system {
        heading(out, &format!("system: {}, {}", name(piece.kind), count_tokens(piece.tokens)))?;
        body(out, &piece.text, "", None)?;
    }
    let mut transcript = Transcript::new(window.budget.left_out);
    for shown in &window.messages {
        transcript.message(out, &shown.message)?;
        let mends = window.mended.iter().filter(|mend| mend.message_id == shown.message.id);
        let mut mends: Vec<_> = mends.map(|mend| how(mend.how).to_owned()).collect();
        let short = window.shortened.iter().filter(|short| short.message_id == shown.message.id);
        mends.extend(short.map(|short| format!("too long, {} left out", words::bytes(short.bytes))));
        let mended = if mends.is_empty() { String::new() } else { format!(" ({})", mends.join(", ")) };
        writeln!(out, "    {}", out.paint(Style::Faint, &format!("{}{mended}", count_tokens(shown.tokens))))?;
    }
    if !window.tools.is_empty() {
        heading(out, "schemas of tools")?;
        let named = window.tools.iter().map(|tool| format!("{} ({})", safe::one_line(&tool.name), tool.tokens));
        body(out, &named.collect::<Vec<_>>().join(", "), "", None)?;
    }
    Ok(())
}

fn heading(out: &mut Out, text: &str) -> Result<(), Failure> {
    writeln!(out, "\n{}", out.paint(Style::Faint, &format!("── {text} ──")))
}

fn costs(out: &mut Out, budget: &WindowBudget, shown: u64) -> Result<(), Failure> {
    heading(out, "tokens, as they are estimated")?;
    let limit = budget.limit.to_string();
    let most = budget.window_messages;
    let messages = match budget.left_out {
        0 => format!("{} of at most {most}", count(shown, "message")),
        left_out => format!("{} of at most {most}; {left_out} left out", count(shown, "message")),
    };
    let takes = match budget.takes {
        Some(takes) => format!("the model takes {takes}, with an answer of up to {}", budget.answer),
        None => format!("with an answer of up to {}", budget.answer),
    };
    let mut table = Table::new([Column::new("PART"), Column::new("TOKENS").right(), Column::new("OF").flexible()]);
    let rows = [
        ("system", budget.system, String::new()),
        ("working set", budget.working_set, format!("{limit} with the messages")),
        ("messages", budget.messages, messages),
        ("tools", budget.tools, String::new()),
        ("together", budget.tokens, takes),
    ];
    for (part, tokens, of) in rows {
        table.row([part.into(), tokens.to_string().into(), of.into()]);
    }
    table.write(out)
}

fn name(kind: PieceKind) -> &'static str {
    match kind {
        PieceKind::Prompt => "prompt",
        PieceKind::Docs => "docs",
        PieceKind::Memory => "memory",
        PieceKind::WorkingSet => "working set",
        PieceKind::LastWord => "last word",
    }
}

/// What was done to a message.
fn how(kind: MendKind) -> &'static str {
    match kind {
        MendKind::Opened => "a note stands before it",
        MendKind::Quoted => "quoted",
        MendKind::Renamed => "calls renamed",
        MendKind::Answered => "calls without results are answered",
        MendKind::Stray => "a result without its call, quoted",
        MendKind::Empty => "empty",
    }
}
