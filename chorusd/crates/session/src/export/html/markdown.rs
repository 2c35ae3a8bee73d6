//! Renders what people and models wrote, which is Markdown, as HTML: paragraphs, lists, code, tables and links. HTML in the Markdown is
//! shown as text.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::text::{escape, show_invisible};

/// Longer texts are shown without rendering, since nobody writes so much Markdown.
const MAX_MARKDOWN_BYTES: usize = 256 << 10;

/// How a cell is aligned, as the parser's library writes it and as a class: a page may forbid styles in attributes.
const ALIGNMENTS: [(&str, &str); 3] = [
    (" style=\"text-align: left\">", " class=\"left\">"),
    (" style=\"text-align: center\">", " class=\"center\">"),
    (" style=\"text-align: right\">", " class=\"right\">"),
];

/// Renders `text` as HTML, in which only what this module makes is markup.
pub(super) fn render_markdown(text: &str) -> String {
    if text.len() > MAX_MARKDOWN_BYTES {
        return format!("<div class=\"plain\">{}</div>\n", escape(text));
    }
    let text = show_invisible(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = String::with_capacity(text.len() * 2);
    let mut parser = Parser::new_ext(&text, options);
    let mut safe =
        SafeEvents { events: &mut parser, links: Vec::new(), pending: VecDeque::new(), used_names: Vec::new() };
    html::push_html(&mut page, &mut safe);
    let named = safe.used_names;
    // Quotation marks in texts are escaped: only the library writes these.
    for (style, class) in ALIGNMENTS.iter().filter(|_| text.contains('|')) {
        page = page.replace(style, class);
    }
    page.push_str(&render_unused_definitions(&text, &parser, &named));
    page
}

/// Renders the definitions of links (`[name]: url`) that no link uses. Markdown hides them, but they are part of what
/// was said.
fn render_unused_definitions(text: &str, parser: &Parser<'_>, named: &[CowStr<'_>]) -> String {
    let definitions = parser.reference_definitions();
    let used: HashSet<usize> =
        named.iter().filter_map(|name| definitions.get(name)).map(|definition| definition.span.start).collect();
    let mut left: Vec<_> = definitions.iter().map(|(_, definition)| definition.span.clone()).collect();
    left.retain(|span| !used.contains(&span.start));
    left.sort_unstable_by_key(|span| span.start);
    let lines: Vec<String> = left.into_iter().filter_map(|span| Some(escape(text.get(span)?.trim()))).collect();
    if lines.is_empty() { String::new() } else { format!("<p>{}</p>\n", lines.join("<br />\n")) }
}

/// Filters the parser's events so that none makes the page fetch, run or claim anything.
struct SafeEvents<'a, I> {
    events: I,
    /// The closing tag of each open link or image.
    links: Vec<&'static str>,
    pending: VecDeque<Event<'a>>,
    /// Names of the definitions that links refer to.
    used_names: Vec<CowStr<'a>>,
}

impl<'a, I: Iterator<Item = Event<'a>>> Iterator for SafeEvents<'a, I> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        if let Some(event) = self.pending.pop_front() {
            return Some(event);
        }
        Some(match self.events.next()? {
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => Event::Text(visible_text(text)),
            Event::Code(text) => Event::Code(visible_text(text)),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(visible_text(language))))
            }
            Event::SoftBreak => Event::HardBreak,
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
                level: demote_heading(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(demote_heading(level))),
            Event::Start(Tag::Link { dest_url, id, .. }) => self.open_link(&dest_url, id, ""),
            Event::Start(Tag::Image { dest_url, id, .. }) => self.open_link(&dest_url, id, "picture: "),
            Event::End(TagEnd::Link | TagEnd::Image) => raw_html(self.links.pop().unwrap_or_default()),
            event => event,
        })
    }
}

impl<'a, I> SafeEvents<'a, I> {
    /// Opens a link if its scheme is http, https or mailto. Images become links too, since the page fetches nothing.
    fn open_link(&mut self, url: &str, name: CowStr<'a>, before: &'static str) -> Event<'a> {
        let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let known = matches!(scheme.as_deref(), Some("http" | "https" | "mailto"));
        self.links.push(if known { "</a>" } else { "" });
        if !name.is_empty() {
            self.used_names.push(name);
        }
        if !before.is_empty() {
            self.pending.push_back(Event::Text(before.into()));
        }
        match known {
            true => raw_html(format!("<a rel=\"noopener noreferrer nofollow\" href=\"{}\">", escape(url))),
            false => raw_html(""),
        }
    }
}

/// Makes invisible characters of parsed text visible: an entity such as `&#x202e;` may have become one.
fn visible_text(text: CowStr<'_>) -> CowStr<'_> {
    match show_invisible(&text) {
        Cow::Owned(seen) => seen.into(),
        Cow::Borrowed(_) => text,
    }
}

/// Wraps HTML that this module generates.
fn raw_html<'a>(html: impl Into<CowStr<'a>>) -> Event<'a> {
    Event::InlineHtml(html.into())
}

/// Demotes a heading by two levels, since the heading of a message is of the second level.
fn demote_heading(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::render_markdown;

    #[test]
    fn markdown_is_shown_and_html_is_text() {
        let page =
            render_markdown("# A\n\n*b* `c<d>` <script>x</script>\n\n<div onclick=\"y\">\n\n| a |\n|---|\n| <b> |\n");
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
    fn cells_are_aligned_by_classes() {
        let page = render_markdown("| a | b |\n|--:|:-:|\n| 1 | ` style=\"text-align: right\">` |\n");
        assert!(page.contains("<th class=\"right\">a</th><th class=\"center\">b</th>"), "{page}");
        assert!(page.contains("<code> style=\"text-align: right\"&gt;</code>"), "{page}");
    }

    #[test]
    fn links_lead_out_or_nowhere() {
        let page = render_markdown(
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
    fn entities_bring_nothing_that_is_not_seen() {
        let page = render_markdown(
            "a&#x202e;b&#8203;c&#27;d [e&#x202e;](https://x/&#x202e;) `&#27;`\n\n```a&#x202e;b\nx\n```\n",
        );
        assert!(page.contains("a⟨U+202E⟩b⟨U+200B⟩c␛d"), "{page}");
        assert_eq!(page.matches(['\u{202e}', '\u{200b}', '\u{1b}']).count(), 0, "{page}");
    }

    #[test]
    fn definitions_that_no_link_uses_are_shown() {
        assert_eq!(render_markdown("[todo]: call-Anna"), "<p>[todo]: call-Anna</p>\n");
        let page =
            render_markdown("[b]: <b>\n[a]: http://x \"t\"\n[C d]: http://y\n\nsee [A] and [text][c  D]\n\n> [e]: f");
        assert!(page.ends_with("<p>[b]: &lt;b&gt;<br />\n[e]: f</p>\n"), "{page}");
        assert_eq!(page.matches("<a ").count(), 2, "{page}");
    }

    #[test]
    fn deep_nesting_and_long_texts_are_no_trouble() {
        render_markdown(&">".repeat(50_000));
        render_markdown(&"[".repeat(50_000));
        assert!(render_markdown(&"*a* ".repeat(100_000)).starts_with("<div class=\"plain\">"));
    }
}
