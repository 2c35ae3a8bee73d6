//! The summary block of an exported file, from which a new conversation can continue.

use std::fmt::Write as _;

use chorus_proto::{Item, ItemSource, WorkingSet};

use super::{one_line, parse_speaker_label};

/// First line of the block.
pub(crate) const START: &str = "<!-- SESSION_SUMMARY_START -->";
/// Last line of the block.
pub(crate) const END: &str = "<!-- SESSION_SUMMARY_END -->";

/// Text of a block without a background.
const NO_BACKGROUND: &str = "Initial session.";

/// The contents of the block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SummaryBlock {
    /// Summary of the session that this one continues.
    pub background: Option<String>,
    pub text: Option<String>,
    pub topics: Vec<String>,
    pub decisions: Vec<String>,
    pub pending: Vec<String>,
}

impl SummaryBlock {
    /// Collects the contents from a session's summary and working set.
    #[must_use]
    pub(crate) fn new(summary: Option<&str>, set: &WorkingSet) -> Self {
        let texts = |items: &[Item]| items.iter().map(|item| one_line(&item.text)).collect();
        let line = |text: &str| Some(one_line(text)).filter(|text| !text.is_empty());
        Self {
            background: set.background.as_deref().and_then(line),
            text: summary.and_then(line),
            topics: texts(&set.topics),
            decisions: texts(&set.decisions),
            pending: texts(&set.open_tasks),
        }
    }

    /// Returns whether the block would say nothing.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Renders the block, with a newline at its end. `continues` is true if the session continues another one, which is
    /// then the background even if nothing is known of it.
    #[must_use]
    pub(crate) fn render(&self, continues: bool) -> String {
        let background = self.background.as_deref().or((!continues).then_some(NO_BACKGROUND));
        let background = background.map_or_else(String::new, |text| format!("**Background Context:** {text}\n\n"));
        let mut block = format!("{START}\n{background}**Current Session Summary:**");
        if let Some(text) = &self.text {
            block.push(' ');
            block.push_str(text);
        }
        block.push('\n');
        for (name, items) in
            [("Topics Discussed", &self.topics), ("Decisions Made", &self.decisions), ("Pending", &self.pending)]
        {
            if !items.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(block, "**{name}:**");
                items.iter().for_each(|item| _ = writeln!(block, "- {item}"));
                block.push('\n');
            }
        }
        format!("{}\n{END}\n", block.trim_end())
    }

    /// Parses the lines between the markers.
    #[must_use]
    pub(crate) fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut summary = Self::default();
        let mut part = SummaryPart::Other;
        for line in lines {
            let text = match parse_speaker_label(line) {
                Some((name, rest)) => {
                    part = SummaryPart::from_name(name);
                    rest
                }
                None => line,
            };
            let text = text.trim();
            let bullet = text.strip_prefix("- ").or(text.strip_prefix("* ")).unwrap_or(text).trim();
            if !bullet.is_empty() {
                summary.add_text(part, bullet);
            }
        }
        summary.background = summary.background.filter(|text| text != NO_BACKGROUND);
        summary
    }

    fn add_text(&mut self, part: SummaryPart, text: &str) {
        let prose = match part {
            SummaryPart::Topics => return self.topics.push(text.into()),
            SummaryPart::Decisions => return self.decisions.push(text.into()),
            SummaryPart::Pending => return self.pending.push(text.into()),
            SummaryPart::Background => &mut self.background,
            SummaryPart::Current | SummaryPart::Other => &mut self.text,
        };
        match prose {
            Some(before) => *before = format!("{before} {text}"),
            None => *prose = Some(text.into()),
        }
    }

    /// Returns the summary as one text: the session's summary, else its topics, else the background.
    #[must_use]
    pub(crate) fn to_text(&self) -> Option<String> {
        let topics = (!self.topics.is_empty()).then(|| format!("Topics: {}.", self.topics.join("; ")));
        self.text.clone().or(topics).or_else(|| self.background.clone())
    }

    /// Returns the working set that the block describes.
    #[must_use]
    pub(crate) fn working_set(&self) -> WorkingSet {
        let items = |kind: &str, texts: &[String]| -> Vec<Item> {
            let item = |(at, text): (usize, &String)| Item {
                id: format!("{kind}{}", at + 1),
                text: text.clone(),
                source: ItemSource::Rule,
                message_id: None,
            };
            texts.iter().enumerate().map(item).collect()
        };
        WorkingSet {
            background: self.background.clone(),
            topics: items("topic-", &self.topics),
            decisions: items("decision-", &self.decisions),
            open_tasks: items("task-", &self.pending),
            ..WorkingSet::default()
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum SummaryPart {
    Background,
    Current,
    Topics,
    Decisions,
    Pending,
    Other,
}

impl SummaryPart {
    fn from_name(name: &str) -> Self {
        match name {
            "Background Context" => Self::Background,
            "Current Session Summary" => Self::Current,
            "Topics Discussed" => Self::Topics,
            "Decisions Made" => Self::Decisions,
            "Pending" => Self::Pending,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_it_is_written() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let summary = SummaryBlock {
            background: Some("We talked of tokens.".into()),
            text: Some("A limiter was built.".into()),
            topics: list(&["Buckets", "Windows"]),
            decisions: list(&["100 a minute"]),
            pending: Vec::new(),
        };
        let block = summary.render(false);
        let inside = block.strip_prefix(START).unwrap().strip_suffix(&format!("{END}\n")).unwrap();
        assert_eq!(SummaryBlock::parse(inside.lines()), summary);
        assert_eq!(SummaryBlock::parse(["**Background Context:** Initial session."]), SummaryBlock::default());
    }

    #[test]
    fn no_mark_gets_in() {
        let set = WorkingSet { background: Some(format!("x {END}\n{START}")), ..WorkingSet::default() };
        let block = SummaryBlock::new(Some(END), &set).render(true);
        assert_eq!((block.matches(START).count(), block.matches(END).count()), (1, 1), "{block}");
    }
}
