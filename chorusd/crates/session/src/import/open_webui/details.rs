//! Cuts the content of a reply into its texts and the blocks `<details type="…">` between them, in which reasoning and tool
//! calls are.

use super::super::html_text::unescape_entities;

const START: &str = "<details type=\"";
const END: &str = "</details>";

/// A piece of a content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Block(Details<'a>),
}

/// A block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Details<'a> {
    /// What is inside the tag that begins the block.
    tag: &'a str,
    /// What is between the tags, without the summary.
    pub inside: &'a str,
    /// All of it.
    pub whole: &'a str,
}

impl Details<'_> {
    pub(super) fn kind(&self) -> &str {
        self.tag.split('"').nth(1).unwrap_or_default()
    }

    /// Returns the value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let start = format!(" {name}=\"");
        let (_, value) = self.tag.split_once(&start)?;
        Some(unescape_entities(value.split('"').next()?))
    }
}

/// Cuts a content. A block without an end is text.
pub(super) fn cut(content: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), content);
    while let Some((before, block)) = rest.find(START).map(|at| rest.split_at(at)) {
        let Some(tag_end) = block.find('>') else { break };
        let Some(length) = block[tag_end..].find(END).map(|at| tag_end + at) else { break };
        let inside = block[tag_end + 1..length].trim();
        let inside = inside.split_once("</summary>").map_or(inside, |(_, inside)| inside).trim();
        let (whole, after) = block.split_at(length + END.len());
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Block(Details { tag: &block[START.len() - 1..tag_end], inside, whole }));
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces
}
