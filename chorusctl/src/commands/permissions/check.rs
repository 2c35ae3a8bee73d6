//! `chorusctl permissions check`: prints the verdict on an action, and the rules behind it.

use chorus_proto::methods::permissions::{Check, CheckParams, Part, Verdict};

use super::{decision_style, format_rule};
use crate::app::App;
use crate::error::Error;
use crate::ui::{Stdout, sanitize};

/// Test an action against an agent's profile and explain the result
///
/// Nothing is executed. A shell command is split into parts, and the decision on each part is shown. The exit status is 0 for every
/// decision.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl permissions check notes 'tool:bash:git status && rm -rf build'\n  \
                        chorusctl permissions check notes tool:view:README.md")]
pub struct Args {
    /// Agent
    #[arg(value_name = "AGENT")]
    whose: String,
    /// Action, e.g. `tool:bash:COMMAND` or `tool:view:PATH`
    #[arg(value_name = "ACTION")]
    action: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = CheckParams { agent: Some(args.whose), action: args.action };
    app.call_and_print::<Check>(&params, |app, verdict| print_verdict(&mut app.stdout, &verdict))
}

fn print_verdict(out: &mut Stdout, verdict: &Verdict) -> Result<(), Error> {
    let word = verdict.decision.as_str();
    writeln!(out, "{}  {}", out.style(decision_style(verdict.decision), word), format_rule(&verdict.rule))?;
    if let [Part { decision, rule, .. }] = verdict.parts.as_slice()
        && (*decision, rule) == (verdict.decision, &verdict.rule)
    {
        return Ok(());
    }
    for part in &verdict.parts {
        let word = format!("{:5}", part.decision.as_str());
        let action = sanitize::one_line(&part.action);
        writeln!(out, "  {}  {action}", out.style(decision_style(part.decision), &word))?;
        writeln!(out, "         {}", format_rule(&part.rule))?;
    }
    Ok(())
}
