//! Writes the index page of a directory of exported pages: a list with links, newest first.
//!
//! The list is read from the heads of the pages that are there, so pages of earlier exports stay in it.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use crate::error::Error;
use crate::ui::units::pluralize;

/// Name of the page.
pub(super) const FILE_NAME: &str = "index.html";

const STYLE: &str = include_str!("html_index.css");

/// Marks pages of Chorus; see the head of an exported page.
const GENERATOR: &str = "<meta name=\"generator\" content=\"Chorus\">";

/// Marks the index among them.
const INDEX_MARK: &str = "<meta name=\"chorus:index\" content=\"1\">";

/// Bytes of a page that are read. Its head is shorter, without the style.
const MAX_HEAD_BYTES: u64 = 8 << 10;

/// What the list shows of a page. All texts are escaped for HTML.
#[derive(Debug, Default)]
struct Page {
    path: String,
    title: String,
    agent: String,
    model: String,
    /// When the conversation was held last; `history` sorts by it.
    held: String,
    messages: u64,
    tags: String,
}

/// Returns whether the file does not exist or is an index that Chorus wrote.
pub(super) fn may_replace(index: &Path) -> bool {
    !index.exists() || read_head(index).is_some_and(|head| head.contains(INDEX_MARK))
}

/// Renders the index of a directory and the directories in it.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn render(directory: &Path) -> Result<String, Error> {
    let mut pages = Vec::new();
    collect_pages(directory, "", &mut pages)?;
    pages.sort_unstable_by(|a, b| b.held.cmp(&a.held).then_with(|| a.path.cmp(&b.path)));
    let agent = pages.first().map(|page| page.agent.clone()).unwrap_or_default();
    let one_agent = pages.iter().all(|page| page.agent == agent);
    let title =
        if one_agent && !agent.is_empty() { format!("Conversations of {agent}") } else { "Conversations".into() };
    let mut html = format!(
        "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         {GENERATOR}\n{INDEX_MARK}\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p>{}</p>\n<main>\n",
        pluralize(pages.len() as u64, "conversation")
    );
    let mut month = "";
    for page in &pages {
        let of_page = page.held.get(..7).unwrap_or_default();
        if month != of_page || html.ends_with("<main>\n") {
            let end = if html.ends_with("<main>\n") { "" } else { "</ul>\n" };
            month = of_page;
            html.push_str(&format!("{end}<h2>{}</h2>\n<ul>\n", month_name(month)));
        }
        html.push_str(&render_entry(page, one_agent));
    }
    if !pages.is_empty() {
        html.push_str("</ul>\n");
    }
    html.push_str("</main>\n</body>\n</html>\n");
    Ok(html)
}

fn render_entry(page: &Page, one_agent: bool) -> String {
    let agent = if one_agent { "" } else { &page.agent };
    let held = page.held.get(..16).map(|at| format!("{} UTC", at.replace('T', " "))).unwrap_or_default();
    let count = pluralize(page.messages, "message");
    let facts: Vec<&str> =
        [agent, &page.model, &held, &count, &page.tags].into_iter().filter(|it| !it.is_empty()).collect();
    format!(
        "<li><a href=\"{}\">{}</a>\n<span class=\"line\">{}</span></li>\n",
        page.path,
        page.title,
        facts.join(" · ")
    )
}

/// Formats `2026-11` as `November 2026`.
fn month_name(month: &str) -> String {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let (year, number) = month.split_once('-').unwrap_or((month, ""));
    let name = number.parse::<usize>().ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    name.map_or_else(|| "Undated".to_owned(), |name| format!("{name} {year}"))
}

/// Adds the pages in a directory, and in those below it. `before` is the path of the directory for links.
fn collect_pages(directory: &Path, before: &str, pages: &mut Vec<Page>) -> Result<(), Error> {
    let failed = |error| Error::for_file(&directory.to_string_lossy(), &error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.starts_with('.')) else {
            continue;
        };
        let link = format!("{before}{}", percent_encode(name));
        if before.is_empty() && path.is_dir() {
            collect_pages(&path, &format!("{link}/"), pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") && path.is_file() {
            pages.extend(read_head(&path).and_then(|head| parse_page(&head, link)));
        }
    }
    Ok(())
}

fn read_head(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(MAX_HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Parses the head of a page, unless it is another one's.
fn parse_page(head: &str, path: String) -> Option<Page> {
    if !head.contains(GENERATOR) || head.contains(INDEX_MARK) {
        return None;
    }
    // The page has escaped these texts. Whoever has changed it gets no markup into the index either.
    let clean = |text: &str| text.replace('<', "&lt;").replace('"', "&quot;");
    let between = |start: &str, end: &str| {
        let (_, rest) = head.split_once(start)?;
        rest.split_once(end).map(|(text, _)| clean(text))
    };
    let field = |name: &str| between(&format!("<meta name=\"chorus:{name}\" content=\""), "\"").unwrap_or_default();
    Some(Page {
        title: between("<title>", "</title>").filter(|title| !title.is_empty()).unwrap_or_else(|| clean(&path)),
        path,
        agent: field("agent"),
        model: field("model"),
        // Pages of earlier versions only say when the conversation was saved.
        held: Some(field("held")).filter(|held| !held.is_empty()).unwrap_or_else(|| field("saved")),
        messages: field("messages").parse().unwrap_or_default(),
        tags: field("tags")
            .split(", ")
            .filter(|tag| !tag.is_empty())
            .map(|tag| format!("#{tag}"))
            .collect::<Vec<_>>()
            .join(" "),
    })
}

/// Encodes a file name for a link.
fn percent_encode(name: &str) -> String {
    let mut link = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => link.push(byte.into()),
            _ => link.push_str(&format!("%{byte:02X}")),
        }
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_page_brings_no_markup() {
        let head = format!("{GENERATOR}\n<title>a <b>&amp;</title>\n<meta name=\"chorus:agent\" content=\"<i>\">");
        let page = parse_page(&head, percent_encode("a \"b\".html")).unwrap_or_default();
        assert_eq!((&*page.title, &*page.agent, &*page.path), ("a &lt;b>&amp;", "&lt;i>", "a%20%22b%22.html"));
        assert!(parse_page("<title>x</title>", String::new()).is_none());
        assert_eq!((month_name("2026-11"), month_name("")), ("November 2026".to_owned(), "Undated".to_owned()));
    }
}
