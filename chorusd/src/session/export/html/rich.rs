//! What a model writes is Markdown: paragraphs, lists, code, tables and links, and no HTML of its own.

use std::collections::VecDeque;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::text::{escape, visible};

/// Longer texts are shown as they are: nobody writes so much Markdown.
const MOST: usize = 256 << 10;

/// `text` as HTML.
pub(super) fn render(text: &str) -> String {
    if text.len() > MOST {
        return format!("<div class=\"plain\">{}</div>\n", escape(text));
    }
    let text = visible(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = String::with_capacity(text.len() * 2);
    html::push_html(
        &mut page,
        Safe { events: Parser::new_ext(&text, options), links: Vec::new(), next: VecDeque::new() },
    );
    page
}

/// Events of which none makes the page fetch, run or claim anything.
struct Safe<'a, I> {
    events: I,
    /// For each open link or picture, what ends it.
    links: Vec<&'static str>,
    next: VecDeque<Event<'a>>,
}

impl<'a, I: Iterator<Item = Event<'a>>> Iterator for Safe<'a, I> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        if let Some(event) = self.next.pop_front() {
            return Some(event);
        }
        Some(match self.events.next()? {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::SoftBreak => Event::HardBreak,
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            Event::Start(Tag::Heading { level, .. }) => {
                Event::Start(Tag::Heading { level: below(level), id: None, classes: Vec::new(), attrs: Vec::new() })
            }
            Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
            Event::Start(Tag::Link { dest_url, .. }) => self.open(&dest_url, ""),
            Event::Start(Tag::Image { dest_url, .. }) => self.open(&dest_url, "picture: "),
            Event::End(TagEnd::Link | TagEnd::Image) => markup(self.links.pop().unwrap_or_default()),
            event => event,
        })
    }
}

impl<'a, I> Safe<'a, I> {
    /// A link, where it leads to a place that a person may want to go to; a picture is one too, since a page fetches nothing.
    fn open(&mut self, url: &str, before: &'static str) -> Event<'a> {
        let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let known = matches!(scheme.as_deref(), Some("http" | "https" | "mailto"));
        self.links.push(if known { "</a>" } else { "" });
        if !before.is_empty() {
            self.next.push_back(Event::Text(before.into()));
        }
        match known {
            true => markup(format!("<a rel=\"noopener noreferrer nofollow\" href=\"{}\">", escape(url))),
            false => markup(""),
        }
    }
}

/// HTML of ours.
fn markup<'a>(html: impl Into<CowStr<'a>>) -> Event<'a> {
    Event::InlineHtml(html.into())
}

/// The heading of a message is of the second level: those in it come below.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn markdown_is_shown_and_html_is_text() {
        let page = render("# A\n\n*b* `c<d>` <script>x</script>\n\n<div onclick=\"y\">\n\n| a |\n|---|\n| <b> |\n");
        for due in
            ["<h3>A</h3>", "<em>b</em>", "<code>c&lt;d&gt;</code>", "&lt;script&gt;", "&lt;div onclick", "<table>"]
        {
            assert!(page.contains(due), "{due}: {page}");
        }
        for never in ["<script", "<div", "<b>"] {
            assert!(!page.contains(never), "{never}: {page}");
        }
    }

    #[test]
    fn links_lead_out_or_nowhere() {
        let page = render(
            "[a](https://x.y/?a=1&b=\"c) [b](javascript:alert(1)) ![c](http://t/p.png) <JaVaScRiPt:x> [d](data:text/html,x)",
        );
        assert!(
            page.contains("<a rel=\"noopener noreferrer nofollow\" href=\"https://x.y/?a=1&amp;b=&quot;c\">a</a>"),
            "{page}"
        );
        assert!(page.contains("href=\"http://t/p.png\">picture: c</a>"), "{page}");
        assert_eq!(page.matches("<a ").count(), 2, "{page}");
        assert!(!page.contains("<img"), "{page}");
    }

    #[test]
    fn deep_nesting_and_long_texts_are_no_trouble() {
        render(&">".repeat(50_000));
        render(&"[".repeat(50_000));
        assert!(render(&"*a* ".repeat(100_000)).starts_with("<div class=\"plain\">"));
    }
}
