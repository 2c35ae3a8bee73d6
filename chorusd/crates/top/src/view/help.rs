//! The help.

use super::paint::{Paint, Rows, fit};

pub(super) const KEYS: &[(&str, &str)] = &[("any key", "back")];

/// Keys by where they work.
const HELP: &[(&str, &[(&str, &str)])] = &[
    (
        "List",
        &[
            ("↑ ↓ j k, PgUp PgDn, Home End", "select a conversation"),
            ("Enter", "open it live, or read a saved one"),
            ("/", "search all conversations, and names of agents"),
            ("h, t", "saved conversations of the agent, or its tree"),
            ("a", "pending approvals"),
            ("q, Ctrl-C", "quit"),
        ],
    ),
    (
        "Conversation",
        &[
            ("Enter", "send what was typed"),
            ("PgUp PgDn, ↑ ↓", "scroll"),
            ("Tab", "answer an approval"),
            ("Ctrl-X", "cancel the running turn"),
            ("Esc", "back"),
        ],
    ),
    ("Saved conversations", &[("Enter", "read"), ("r", "make it the live conversation (asks first)")]),
    (
        "Approvals",
        &[
            ("y, n", "allow once, deny"),
            ("a, p", "always allow this exact action, or this kind"),
            ("s", "allow all of this turn"),
        ],
    ),
];

/// Width of the column with the keys.
const KEY_COLUMNS: usize = 30;

pub(super) fn draw(rows: &mut Rows<'_>, paint: Paint) {
    let is_roomy = rows.left() > 24;
    for (place, keys) in HELP {
        rows.line(vec![paint.strong(*place)]);
        for (key, what) in *keys {
            let room = rows.columns().saturating_sub(KEY_COLUMNS + 2);
            rows.line(vec![
                paint.plain("  "),
                paint.tool(fit(key, KEY_COLUMNS, false)),
                paint.plain(fit(what, room, false)),
            ]);
        }
        if is_roomy {
            rows.skip(1);
        }
    }
}
