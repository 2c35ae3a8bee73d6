//! `chorusctl context show --window`: prints the window that the next model call would send.

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::{CountedTokens, MendKind, PieceKind, TokenSource, Window, WindowBudget};

use super::compact;
use crate::app::App;
use crate::commands::format;
use crate::commands::transcript::{TranscriptPrinter, print_body};
use crate::error::Error;
use crate::ui::units::{self, format_token_count, group_digits, pluralize};
use crate::ui::{Column, Stdout, Style, Table, sanitize};

pub(crate) fn run(app: &mut App) -> Result<(), Error> {
    app.page_if_long();
    let params =
        ShowParams { agent: app.agent(), conversation: app.conversation(), window: true, ..ShowParams::default() };
    app.call_and_print::<Show>(&params, |app, result| {
        let Some(window) = result.window else {
            return Err(
                Error::failed("the daemon does not support --window").with_hint("restart it: chorusctl daemon restart")
            );
        };
        if let Some(receipt) = &window.compacts {
            let told = compact::describe_receipt(receipt, false);
            app.stderr
                .line(&format!("the next request compacts first, shown here with the built-in summarizer: {told}"));
        }
        let model = window.model.as_deref().map_or("no model".into(), sanitize::one_line);
        let agent = format::agent_and_conversation(&result.agent_name, result.conversation.as_ref());
        writeln!(app.stdout, "{} · next request to {model}", app.stdout.style(Style::Strong, &agent))?;
        print_contents(&mut app.stdout, &window)?;
        print_budget(&mut app.stdout, &window.budget, window.messages.len() as u64)
    })
}

fn print_contents(out: &mut Stdout, window: &Window) -> Result<(), Error> {
    for piece in &window.system {
        print_heading(out, &format!("system: {}, {}", piece_name(piece.kind), format_token_count(piece.tokens)))?;
        print_body(out, &piece.text, "")?;
    }
    let mut transcript = TranscriptPrinter::new(window.budget.left_out);
    for shown in &window.messages {
        transcript.print_message(out, &shown.message)?;
        let mends = window.mended.iter().filter(|mend| mend.message_id == shown.message.id);
        let mut mends: Vec<_> = mends.map(|mend| describe_repair(mend.how).to_owned()).collect();
        let short = window.shortened.iter().filter(|short| short.message_id == shown.message.id);
        mends.extend(short.map(|short| format!("truncated by {}", units::format_bytes(short.bytes))));
        let repairs = if mends.is_empty() { String::new() } else { format!(" ({})", mends.join(", ")) };
        writeln!(out, "    {}", out.style(Style::Faint, &format!("{}{repairs}", format_token_count(shown.tokens))))?;
    }
    if !window.tools.is_empty() {
        print_heading(out, "tool schemas")?;
        let named = window.tools.iter().map(|tool| format!("{} ({})", sanitize::one_line(&tool.name), tool.tokens));
        print_body(out, &named.collect::<Vec<_>>().join(", "), "")?;
    }
    Ok(())
}

fn print_heading(out: &mut Stdout, text: &str) -> Result<(), Error> {
    writeln!(out, "\n{}", out.style(Style::Faint, &format!("── {text} ──")))
}

fn print_budget(out: &mut Stdout, budget: &WindowBudget, shown: u64) -> Result<(), Error> {
    print_heading(out, "estimated tokens")?;
    let limit = group_digits(budget.limit);
    let most = budget.window_messages;
    let messages = match budget.left_out {
        0 => format!("{} of at most {most}", pluralize(shown, "message")),
        left_out => format!("{} of at most {most}; {left_out} left out", pluralize(shown, "message")),
    };
    let takes = match budget.takes {
        Some(takes) => {
            format!("limit of the model {}, with a reply of up to {}", group_digits(takes), group_digits(budget.answer))
        }
        None => format!("with a reply of up to {}", group_digits(budget.answer)),
    };
    let mut table =
        Table::new([Column::new("PART"), Column::new("TOKENS").align_right(), Column::new("OF").flexible()]);
    let rows = [
        ("system", budget.system, String::new()),
        ("working set", budget.working_set, format!("{limit} including messages")),
        ("messages", budget.messages, messages),
        ("tools", budget.tools, String::new()),
        ("total", budget.tokens, takes),
    ];
    for (part, tokens, of) in rows {
        table.add_row([part.into(), group_digits(tokens).into(), of.into()]);
    }
    table.write(out)?;
    match budget.counted {
        Some(CountedTokens { tokens, source: TokenSource::Exact }) => {
            writeln!(out, "\n{} tokens, counted with the vocabulary of the model", group_digits(tokens))
        }
        Some(CountedTokens { tokens, .. }) => {
            writeln!(out, "\n{} tokens, counted by the provider", group_digits(tokens))
        }
        None => Ok(()),
    }
}

fn piece_name(kind: PieceKind) -> &'static str {
    match kind {
        PieceKind::Prompt => "prompt",
        PieceKind::Docs => "docs",
        PieceKind::Memory => "memory",
        PieceKind::WorkingSet => "working set",
        PieceKind::LastWord => "step limit notice",
    }
}

/// Describes how a message was repaired for the model.
fn describe_repair(kind: MendKind) -> &'static str {
    match kind {
        MendKind::Opened => "note added before it",
        MendKind::Quoted => "quoted",
        MendKind::Renamed => "tool calls renamed",
        MendKind::Answered => "missing tool results added",
        MendKind::Stray => "tool result without a call, quoted",
        MendKind::Empty => "empty",
    }
}
