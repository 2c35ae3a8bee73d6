//! `chorusctl permissions rules`: lists the rules of an agent, or removes one.

use chorus_proto::methods::permissions::{
    AgentRule, AgentRuleKind, RemoveRule, RemoveRuleParams, Rules, RulesParams, RulesResult,
};

use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};

/// List or remove what an agent is permanently allowed
///
/// A rule is an approval that was given permanently: for exactly one command, or for a pattern such as `git status *`. Rules apply in
/// addition to the agent's profile. They allow actions that otherwise need approval, but never actions that the profile denies.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl permissions rules\n  chorusctl permissions rules notes --remove 2")]
pub struct Args {
    /// Agent [default: the current one]
    #[arg(value_name = "AGENT")]
    whose: Option<String>,
    /// Remove the rule with this number; later rules are renumbered
    #[arg(long, visible_alias = "rm", value_name = "N")]
    remove: Option<u64>,
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 4] = [
    Column::new("N").named("number").align_right(),
    Column::new("ALLOWS").flexible(),
    Column::new("SINCE").whole(),
    Column::new("BY").optional(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    let agent = args.whose.or_else(|| app.agent());
    if let Some(number) = args.remove {
        return app.call_and_print::<RemoveRule>(&RemoveRuleParams { agent, number, rule: None }, |app, done| {
            let agent = sanitize::one_line(&done.agent);
            app.stdout.status_line(&format!("removed from the rules of {agent}: {}", rule_text(&done.removed)))
        });
    }
    let params = RulesParams { agent };
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<Rules>(&params)?;
        return print_pages::print_entries(&mut app.stdout, &raw, "rules");
    }
    app.call_and_print::<Rules>(&params, |app, found| print_rules(table, app, &found))
}

fn print_rules(mut table: Table, app: &mut App, found: &RulesResult) -> Result<(), Error> {
    if found.rules.is_empty() {
        app.stderr.line(&format!("{} has no rules in addition to its profile", sanitize::one_line(&found.agent)));
        return Ok(());
    }
    for rule in &found.rules {
        table.add_row([
            Cell::new(Style::Strong, rule.number.to_string()),
            rule_text(rule).into(),
            Cell::from(app.stdout.clock().local_date_time(rule.created_at)).sorted_by_time(rule.created_at),
            sanitize::one_line(&rule.created_by).into(),
        ]);
    }
    table.write(&mut app.stdout)
}

/// Returns the command or the pattern; an action of another tool as it is.
fn rule_text(rule: &AgentRule) -> String {
    let text = sanitize::one_line(&rule.rule);
    match (rule.kind, text.strip_prefix("tool:bash:")) {
        (AgentRuleKind::Action, Some(command)) => command.to_owned(),
        _ => text,
    }
}
