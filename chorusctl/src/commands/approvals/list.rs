//! `chorusctl approvals list`: prints open approvals, and with `--all` decided ones.

use chorus_proto::approval_text::describe_action;
use chorus_proto::methods::agent;
use chorus_proto::methods::approvals::{Approval, List, ListParams, Status};
use chorus_proto::visible_text::make_visible;

use super::format;
use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, RowArgs, Style, Table, sanitize};

/// List pending approvals (default)
///
/// Shows each action in full, what it may reach, and why it needs approval. Invisible characters are shown escaped. --agent selects one
/// agent. With --columns, --sort or --filter, they are a table.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Also show the last hundred decisions
    #[arg(long)]
    all: bool,
    /// Also show the rules that ask, and the parts of a command
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    rows: RowArgs,
}

const COLUMNS: [Column; 8] = [
    Column::new("ID").whole(),
    Column::new("AGENT"),
    Column::new("CONVERSATION").optional(),
    Column::new("STATUS"),
    Column::new("ASKED").whole(),
    Column::new("EXPIRES").whole().optional(),
    Column::new("ACTION").flexible(),
    Column::new("REASON").flexible().optional(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    // As in `status`, only `--agent` filters; the agent of the current directory does not.
    let mut table = Table::arranged(COLUMNS, &args.rows, app.stdout.format())?;
    let first = ListParams { agent: app.global.agent.clone(), all: args.all, ..ListParams::default() };
    if app.stdout.format() != OutputFormat::Text {
        let following = |offset| ListParams { offset: Some(offset), ..first.clone() };
        return print_pages::print_all_pages::<List, _>(app, "approvals", &first, following);
    }
    let (mut some, mut next, mut open) = (false, Some(0), Vec::new());
    while let Some(offset) = next {
        let page = app.call::<List>(&ListParams { offset: Some(offset), ..first.clone() })?;
        for approval in &page.approvals {
            if args.rows.is_given() {
                some = true;
                table.add_row(table_row(approval, app));
                continue;
            }
            if std::mem::replace(&mut some, true) {
                app.stdout.text("\n")?;
            }
            print_approval(approval, args.long, app)?;
            open.extend((approval.status == Status::Open).then(|| approval.id.clone()));
        }
        next = page.next;
    }
    if !some {
        app.stderr.line("no pending approvals");
    } else if args.rows.is_given() {
        if args.long {
            table.print_whole();
        }
        return table.write(&mut app.stdout);
    }
    if let Some(id) = open.first() {
        app.stdout.flush()?;
        let id = if open.len() == 1 { sanitize::one_line(id) } else { "ID".to_owned() };
        app.stderr.hint(&format!("answer: chorusctl approvals approve {id}, or: chorusctl approvals deny {id}"));
    }
    Ok(())
}

fn table_row(approval: &Approval, app: &mut App) -> [Cell; 8] {
    let clock = app.stdout.clock();
    let expires = (approval.status == Status::Open)
        .then(|| Cell::from(format!("in {}", clock.until(approval.expires_at))).sorted_by_time(approval.expires_at));
    [
        Cell::new(Style::Id, sanitize::one_line(&approval.id)),
        sanitize::one_line(&approval.agent).into(),
        sanitize::one_line(approval.conversation.as_deref().unwrap_or_default()).into(),
        approval.status.as_str().into(),
        Cell::from(clock.ago(approval.asked_at)).sorted_by_time(approval.asked_at),
        expires.unwrap_or_default(),
        sanitize::one_line(&make_visible(describe_action(&approval.action).subject)).into(),
        sanitize::one_line(approval.reason.as_deref().unwrap_or_default()).into(),
    ]
}

fn print_approval(approval: &Approval, long: bool, app: &mut App) -> Result<(), Error> {
    let width = app.stdout.width();
    let (head, mut rest) = format::format_approval(approval, width, app.stdout.clock());
    if !approval.patterns.is_empty() {
        rest.push(format!("  --pattern allows {}", format::format_patterns(approval)));
    }
    if long {
        let name = Some(approval.agent.clone());
        let permissions =
            app.call::<agent::Show>(&agent::ShowParams { name }).ok().map(|shown| shown.agent.permissions);
        rest.extend(format::format_rules(approval, permissions.as_ref(), width));
    }
    writeln!(app.stdout, "{}", app.stdout.style(Style::Strong, &head))?;
    rest.iter().try_for_each(|line| writeln!(app.stdout, "{line}"))
}
