//! The frame of the pages.

use maud::{DOCTYPE, Markup, html};

use crate::app::{App, Overview};
use crate::prefix::{at, prefix};
use crate::routes::{EVENTS, SCRIPT, STYLE};

/// The page of the navigation that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Conversations,
    Usage,
    Approvals,
    None,
}

/// What the frame needs to know of a page.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    pub(crate) section: Section,
    /// The words in the search box.
    pub(crate) words: &'a str,
    /// The query of the stream of events: `?agent=…` for a conversation that is followed.
    pub(crate) stream: String,
    /// The number of the newest change before the page was made.
    pub(crate) revision: u64,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(app: &App, title: &'a str, section: Section) -> Self {
        Self { title, section, words: "", stream: String::new(), revision: app.hub.revision() }
    }
}

/// Returns the page.
pub(crate) fn page(frame: &Frame<'_>, overview: &Overview, main: &Markup) -> Markup {
    let Frame { title, section, words, stream, revision } = frame;
    let is_here = |of: Section| (*section == of).then_some("page");
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body data-root=(prefix()) data-events=(format!("{}{stream}", at(EVENTS))) data-revision=(revision) {
                a.skip href="#main" { "Skip to the content" }
                div.bar role="banner" {
                    a.brand href=(at("/")) { "Chorus" }
                    nav {
                        a href=(at("/")) aria-current=[is_here(Section::Conversations)] { "Conversations" }
                        a href=(at("/usage")) aria-current=[is_here(Section::Usage)] { "Usage" }
                        a href=(at("/approvals")) aria-current=[is_here(Section::Approvals)] {
                            "Approvals"
                            span #pending data-live data-src=(at("/approvals")) data-on="approval." { (pending(overview.approvals())) }
                        }
                    }
                    form.find role="search" action=(at("/search")) {
                        input #words type="search" name="q" value=(words) placeholder="Search" aria-label="Search all conversations"
                            autocomplete="off" maxlength="400";
                    }
                }
                p #connection role="status" hidden {}
                main #main tabindex="-1" { (main) }
                (help())
            }
        }
    }
}

fn pending(approvals: u64) -> Markup {
    html! { @if approvals > 0 { " " b.count { (approvals) } } }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · Chorus" }
            link rel="stylesheet" href=(at(STYLE));
            link rel="icon" href="data:,";
            script src=(at(SCRIPT)) defer {}
        }
    }
}

/// The keys. The script opens it.
fn help() -> Markup {
    let keys = [
        ("/", "search"),
        ("j, k", "next, previous"),
        ("Enter", "open"),
        ("i", "write a message"),
        ("g, G", "first, last"),
        ("h, u, a", "conversations, usage, approvals"),
        ("Esc", "leave a box, close the search"),
        ("?", "these keys"),
    ];
    html! {
        dialog #help aria-label="Keys" {
            h2 { "Keys" }
            dl { @for (key, text) in keys { dt { kbd { (key) } } dd { (text) } } }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// Returns a page without anything of the daemon.
pub(crate) fn bare(title: &str, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body.bare { main { (main) } }
        }
    }
}

/// Returns a message as a sentence: with a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return String::new() };
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{}{}{end}", first.to_uppercase(), chars.as_str())
}

/// Returns links to the other pages of a list; nothing if there is only one.
pub(crate) fn pages(page: u64, pages: u64, link: impl Fn(u64) -> String) -> Markup {
    html! {
        @if pages > 1 {
            nav.pages aria-label="Pages" {
                @if page > 1 { a rel="prev" href=(link(page - 1)) { "← Newer" } }
                span { "page " (page) " of " (pages) }
                @if page < pages { a rel="next" href=(link(page + 1)) { "Older →" } }
            }
        }
    }
}
