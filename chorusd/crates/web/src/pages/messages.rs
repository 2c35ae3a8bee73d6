//! Messages of a conversation, in pages.

use chorus_proto::{Message, Role};
use chorus_session::export::html::{MessageStyle, write_shown_message};
use maud::{Markup, PreEscaped, html};

/// Messages on a page.
pub(super) const MESSAGES: u64 = 50;
/// Messages before the one that a permalink names.
const BEFORE: u64 = 5;

/// A page of messages, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) start: u64,
    pub(super) total: u64,
}

impl Page {
    /// Returns the page whose first message is `from`, counted from 1; or that has `message`; or else the one at `default`.
    pub(super) fn find(total: u64, from: Option<u64>, message: Option<u64>, default: u64) -> Self {
        let start = match (from, message) {
            (Some(from), _) => from.saturating_sub(1),
            (None, Some(message)) => message.saturating_sub(1 + BEFORE),
            (None, None) => default,
        };
        Self { start: start.min(total.saturating_sub(1)), total }
    }

    /// Returns links to the other pages. The earlier one ends with the message before this one, where the browser scrolls to. `shown`
    /// messages are on this one, `last` is the address of the last one.
    pub(super) fn links(self, shown: u64, path: &str, last: &str) -> Markup {
        let Self { start, total } = self;
        let end = start + shown;
        let link = |start: u64| format!("{path}?from={}", start + 1);
        let before = |end: u64| format!("{path}?before={}#m{end}", end + 1);
        html! {
            @if start > 0 || end < total {
                nav.pages aria-label="Messages" {
                    @if start > 0 {
                        a href=(link(0)) { "First" }
                        a rel="prev" href=(before(start)) { "← Earlier" }
                    }
                    span { (start + 1) "–" (end) " of " (total) }
                    @if end < total {
                        a rel="next" href=(link(end)) { "Later →" }
                        a href=(last) { "Last" }
                    }
                }
            }
        }
    }
}

/// The page of messages that ends before another one. Long messages fill an answer of the daemon early: then it is read further, and the
/// last answer is the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageBefore {
    /// The first message to read, counted from 0.
    pub(super) start: u64,
    end: u64,
}

impl PageBefore {
    /// Returns the page before the message with this number, counted from 1, or the last one.
    pub(super) fn new(before: u64, total: u64) -> Self {
        let end = before.saturating_sub(1).min(total);
        Self { start: end.saturating_sub(MESSAGES), end }
    }

    /// Returns the number of messages to read.
    pub(super) fn limit(self) -> u64 {
        self.end - self.start
    }

    /// Returns what to read next after an answer with `count` messages; `None` if it is the page.
    pub(super) fn after(self, count: u64) -> Option<Self> {
        (count > 0 && count < self.limit()).then_some(Self { start: self.start + count, ..self })
    }
}

/// Renders messages; the first has the number `first`, counted from 1. `model` returns what wrote a message.
pub(super) fn render<'a>(
    messages: &'a [Message],
    first: u64,
    style: &MessageStyle<'_>,
    model: impl Fn(&'a Message) -> Option<&'a str>,
) -> Markup {
    let mut out = Vec::new();
    for (number, message) in (first..).zip(messages) {
        let model = model(message).filter(|_| message.role == Role::Assistant && !message.generated);
        // Writing to memory cannot fail.
        let _ = write_shown_message(&mut out, number, message, model, style);
    }
    PreEscaped(String::from_utf8(out).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_message_that_was_asked_for() {
        assert_eq!(Page::find(200, None, Some(120), 0).start, 114);
        assert_eq!(Page::find(200, None, Some(2), 0).start, 0);
        assert_eq!(Page::find(200, Some(51), Some(120), 0).start, 50);
        assert_eq!(Page::find(200, None, None, 150).start, 150);
        assert_eq!(Page::find(3, Some(900), None, 0).start, 2);
        assert_eq!(Page::find(0, Some(900), None, 0).start, 0);
    }

    #[test]
    fn a_page_before_another_ends_there_however_long_its_messages_are() {
        let page = PageBefore::new(51, 200);
        assert_eq!((page.start, page.limit(), page.after(50)), (0, 50, None));
        let next = page.after(30).unwrap();
        assert_eq!((next.start, next.limit(), next.after(20), next.after(0)), (30, 20, None, None));
        assert_eq!(PageBefore::new(21, 200), PageBefore { start: 0, end: 20 });
        assert_eq!(PageBefore::new(900, 200), PageBefore { start: 150, end: 200 });
        assert_eq!(PageBefore::new(0, 0).limit(), 0);
    }

    #[test]
    fn the_links_lead_to_the_other_pages() {
        let links = Page { start: 50, total: 200 }.links(50, "/x", "/x?last").into_string();
        for due in ["/x?from=1\"", "/x?before=51#m50\"", "/x?from=101\"", "/x?last\"", "51–100 of 200"] {
            assert!(links.contains(due), "{due}: {links}");
        }
        assert_eq!(Page { start: 0, total: 20 }.links(20, "/x", "/x?last").into_string(), "");
    }
}
