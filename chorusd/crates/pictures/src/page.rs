//! A file that needs no other.

use crate::STYLE;
use crate::markup::escape;

/// The style of a page around its pictures.
const PAGE_STYLE: &str = include_str!("page.css");

/// Wraps markup into a page. `title` and `summary` are texts, `content` is markup of this crate or escaped text.
#[must_use]
pub fn page(title: &str, summary: &str, content: &str) -> String {
    let (title, summary) = (escape(title), escape(summary));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"Chorus\">\n<meta name=\"chorus:index\" content=\"1\">\n\
         <title>{title}</title>\n<style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p class=\"summary\">{summary}</p>\n<main>\n{content}</main>\n</body>\n</html>\n"
    )
}

/// Renders a part of a page: a heading, a picture, and the same as a table, which can be opened.
#[must_use]
pub fn section(title: &str, picture: &str, table: &str) -> String {
    let table = if table.is_empty() {
        String::new()
    } else {
        format!("<details><summary>as a table</summary>\n<div class=\"scroll\">\n{table}</div>\n</details>\n")
    };
    format!("<section>\n<h2>{}</h2>\n<div class=\"scroll\">\n{picture}</div>\n{table}</section>\n", escape(title))
}

/// Renders a table with these headings.
#[must_use]
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, texts: &mut dyn Iterator<Item = &str>| {
        texts.map(|text| format!("<{tag}>{}</{tag}>", escape(text))).collect::<String>()
    };
    let mut html =
        format!("<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n", cells("th", &mut headings.iter().copied()));
    for row in rows {
        html.push_str(&format!("<tr>{}</tr>\n", cells("td", &mut row.iter().map(String::as_str))));
    }
    html.push_str("</tbody>\n</table>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_no_script_and_loads_nothing() {
        let page = page("A <title>", "1 & 2", "<p>x</p>\n");
        assert!(page.contains("<h1>A &lt;title&gt;</h1>") && page.contains("1 &amp; 2"), "{page}");
        for absent in ["<script", "http://", "https://", "url(", "@import"] {
            assert!(!page.contains(absent), "{absent}");
        }
        let part = section("by <day>", "<svg/>", &table(&["day"], &[vec!["<b>".into()]]));
        assert!(part.contains("<h2>by &lt;day&gt;</h2>") && part.contains("<td>&lt;b&gt;</td>"), "{part}");
    }
}
