//! `chorusctl conversations list`: prints an agent's conversations as a table.

use chorus_proto::AgentState;
use chorus_proto::methods::conversations::{Conversation, List, ListParams};

use crate::app::App;
use crate::commands::format;
use crate::conversation_select::SELECTED;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Stdout, Style, Table, sanitize, text};

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
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
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
    write_table(&mut app.stdout, &conversations, is_used)
}

fn write_table(
    out: &mut Stdout,
    conversations: &[Conversation],
    is_used: impl Fn(&Conversation) -> bool,
) -> Result<(), Error> {
    let has_worktrees = conversations.iter().any(|conversation| conversation.worktree.is_some());
    let mut columns = vec![
        Column::new(""),
        Column::new("NAME"),
        Column::new("STATE"),
        Column::new("MESSAGES").align_right(),
        Column::new("ACTIVITY"),
        Column::new("OPEN IN"),
    ];
    columns.extend(has_worktrees.then(|| Column::new("BRANCH")));
    columns.push(Column::new("TITLE").flexible());
    let mut table = Table::new(columns);
    for conversation in conversations {
        table.add_row(row(out, conversation, is_used(conversation), has_worktrees));
    }
    table.write(out)
}

/// Returns the cells of a conversation, with that of its branch if `has_worktrees`.
fn row(out: &mut Stdout, conversation: &Conversation, is_used: bool, has_worktrees: bool) -> Vec<Cell> {
    let (context, last) = (conversation.context.as_ref(), conversation.last_session.as_ref());
    let state = match (&conversation.turn, context, conversation.closed_at) {
        (Some(turn), ..) => format::running_cell(turn),
        (_, Some(_), _) => format::state_cell(AgentState::Active),
        (.., Some(_)) => Cell::new(Style::Faint, "closed"),
        _ => format::state_cell(AgentState::Idle),
    };
    let active_at = context.map(|context| context.last_activity_at).or(last.map(|last| last.saved_at));
    let clients: Vec<String> = conversation.attached.iter().map(|client| sanitize::one_line(&client.client)).collect();
    let mut cells = vec![
        if is_used { "*" } else { "" }.into(),
        Cell::new(Style::Strong, shown_name(out, &conversation.name)),
        state,
        context.map_or_else(String::new, |context| context.messages.to_string()).into(),
        active_at.map_or_else(String::new, |at| out.clock().ago(at)).into(),
        clients.join(", ").into(),
    ];
    if has_worktrees {
        let branch = conversation.worktree.as_ref().map(|worktree| sanitize::one_line(&worktree.branch));
        cells.push(branch.unwrap_or_default().into());
    }
    cells.push(sanitize::one_line(conversation.title.as_deref().unwrap_or_default()).into());
    cells
}

/// Returns a name as the table shows it: on a terminal a long one is cut, so that the other columns have room.
fn shown_name(out: &Stdout, name: &str) -> String {
    let name = sanitize::one_line(name);
    match out.width() {
        Some(_) => text::truncate(&name, MAX_NAME_COLUMNS).into_owned(),
        None => name,
    }
}
