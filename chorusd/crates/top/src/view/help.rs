//! The help.

use super::paint::{Paint, Rows, fit};

pub(super) const KEYS: &[(&str, &str)] = &[("↑↓ PgUp/PgDn", "scroll"), ("any other key", "back")];

/// Keys by where they work.
const HELP: &[(&str, &[(&str, &str)])] = &[
    (
        "List",
        &[
            ("↑ ↓ j k, PgUp PgDn, g G", "select a conversation; Home End, too"),
            ("Enter", "open it live, or read a saved one"),
            ("/", "search all conversations, and names of agents"),
            ("h, t", "saved conversations of the agent, or its tree"),
            ("a", "pending approvals"),
            ("q", "quit"),
        ],
    ),
    (
        "Conversation",
        &[
            ("Enter, Alt-Enter", "send what was typed; add a line"),
            ("PgUp PgDn, ↑ ↓", "scroll; loads earlier messages at the top"),
            ("↑", "edit a message that was not sent"),
            ("Tab", "answer an approval"),
            ("Ctrl-X", "cancel the running turn"),
            ("Ctrl-C", "the same; quit, if none runs or pressed twice"),
            ("Ctrl-A Ctrl-E, Home End", "move to the start or end of the line"),
            ("Ctrl-W, Ctrl-U", "delete a word, or all before the cursor"),
            ("Esc", "back; the text stays"),
        ],
    ),
    (
        "Saved conversations",
        &[
            ("Enter", "read"),
            ("PgUp PgDn, b Space, g G", "scroll"),
            ("r", "make it the live conversation (asks first)"),
        ],
    ),
    (
        "Approvals",
        &[
            ("y", "allow once"),
            ("n", "deny, with a reason if you like"),
            ("a, p", "always allow this exact action, or this kind"),
            ("s", "allow all of this turn"),
        ],
    ),
    (
        "Everywhere",
        &[("?, F1", "this help (in lists)"), ("Ctrl-L, Ctrl-Z", "draw the screen again, suspend"), ("Ctrl-C", "quit")],
    ),
];

/// Width of the column with the keys.
const KEY_COLUMNS: usize = 30;

/// Draws the help from the line `first` on.
pub(super) fn draw(rows: &mut Rows<'_>, paint: Paint, first: &mut usize) {
    let height = rows.left();
    let room = rows.columns().saturating_sub(KEY_COLUMNS + 2);
    let mut lines = Vec::new();
    for (place, keys) in HELP {
        lines.push(vec![paint.strong(*place)]);
        lines.extend(keys.iter().map(|(key, what)| {
            let key = paint.tool(fit(key, KEY_COLUMNS, false));
            vec![paint.plain("  "), key, paint.plain(fit(what, room, false))]
        }));
    }
    *first = (*first).min(lines.len().saturating_sub(height));
    let below = lines.len().saturating_sub(*first + height);
    let shown = if below > 0 { height.saturating_sub(1) } else { height };
    lines.into_iter().skip(*first).take(shown).for_each(|line| rows.line(line));
    if below > 0 {
        rows.line(vec![paint.faint(format!("{} more lines (PgDn)", below + 1))]);
    }
}
