//! `chorusctl conversations list`: prints an agent's conversations as a table.

use chorus_proto::AgentState;
use chorus_proto::methods::conversations::{Conversation, List, ListParams};

use crate::app::App;
use crate::commands::format;
use crate::conversation_select::SELECTED;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Stdout, Style, Table, TableArgs, sanitize};

/// The most columns that a name takes.
const MAX_NAME_COLUMNS: usize = 24;

/// List an agent's conversations (default)
///
/// A `*` marks the one that commands use: that of -C or $CHORUS_CONVERSATION, else the one set with `conversations use`. Closed ones are hidden without --all; a message opens one again.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Include closed conversations
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 8] = [
    Column::new("").named("used").whole(),
    Column::new("NAME").at_most(MAX_NAME_COLUMNS),
    Column::new("STATE"),
    Column::new("MESSAGES").align_right(),
    Column::new("ACTIVITY").whole(),
    Column::new("OPEN IN").optional(),
    Column::new("BRANCH").optional(),
    Column::new("TITLE").flexible(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let mut table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    let first = ListParams { agent: app.agent(), all: args.all, ..ListParams::default() };
    let following = |offset| ListParams { offset: Some(offset), ..first.clone() };
    if app.stdout.format() != OutputFormat::Text {
        return print_pages::print_all_pages::<List, _>(app, "conversations", &first, following);
    }
    let mut page = app.call::<List>(&first)?;
    let mut conversations = page.conversations;
    while let Some(offset) = page.next {
        page = app.call::<List>(&following(offset))?;
        conversations.extend(page.conversations);
        // Stop at a page whose next offset does not advance.
        page.next = page.next.filter(|next| *next > offset);
        page.conversations = Vec::new();
    }
    let used = app.conversation().filter(|used| used != SELECTED);
    let is_used = |one: &Conversation| match &used {
        Some(used) => one.name == *used || one.id.to_string() == *used,
        None => one.selected,
    };
    for conversation in &conversations {
        table.add_row(row(&mut app.stdout, conversation, is_used(conversation)));
    }
    table.write(&mut app.stdout)
}

/// Returns the cells of a conversation.
fn row(out: &mut Stdout, conversation: &Conversation, is_used: bool) -> [Cell; 8] {
    let (context, last) = (conversation.context.as_ref(), conversation.last_session.as_ref());
    let state = match (&conversation.turn, context, conversation.closed_at) {
        (Some(turn), ..) => format::running_cell(turn),
        (_, Some(_), _) => format::state_cell(AgentState::Active),
        (.., Some(_)) => Cell::new(Style::Faint, "closed"),
        _ => format::state_cell(AgentState::Idle),
    };
    let active_at = context.map(|context| context.last_activity_at).or(last.map(|last| last.held_at()));
    let clients: Vec<String> = conversation.attached.iter().map(|client| sanitize::one_line(&client.client)).collect();
    let branch = conversation.worktree.as_ref().map(|worktree| sanitize::one_line(&worktree.branch));
    [
        if is_used { "*" } else { "" }.into(),
        Cell::new(Style::Strong, sanitize::one_line(&conversation.name)),
        state,
        context.map_or_else(String::new, |context| context.messages.to_string()).into(),
        active_at.map(|at| Cell::from(out.clock().ago(at)).sorted_by_time(at)).unwrap_or_default(),
        clients.join(", ").into(),
        branch.unwrap_or_default().into(),
        sanitize::one_line(conversation.title.as_deref().unwrap_or_default()).into(),
    ]
}
