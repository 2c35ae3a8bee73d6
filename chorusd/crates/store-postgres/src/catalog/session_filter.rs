//! Conditions on the rows of sessions.

use chorus_base::error::Result;
use chorus_catalog::{ProjectFilter, SessionQuery};
use chorus_journal::to_nanos;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::CatalogDb;
use super::session_rows::storable;
use crate::param::Param;

/// Words that a larger part of the sessions have are not looked up in the index.
const MAX_INDEXED_FREQUENCY: f64 = 0.01;

/// A word in lowercase letters.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) is_indexed: bool,
}

/// Finds out which words the index finds faster than a look at all texts.
pub(super) async fn plan_words(db: &CatalogDb, words: Vec<String>) -> Result<Vec<Word>> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<String> = words.iter().map(|word| storable(word)).collect();
    let sql = "SELECT word_frequency(word)::float8 FROM unnest($1::text[]) WITH ORDINALITY AS list (word, place)
         ORDER BY place";
    let frequencies = db.read(sql, &[&texts]).await?;
    let plan = |(text, row): (String, &Row)| Word { text, is_indexed: row.get::<_, f64>(0) <= MAX_INDEXED_FREQUENCY };
    Ok(words.into_iter().zip(&frequencies).map(plan).collect())
}

/// Conditions that all hold, and the parameters of the statement that they are part of.
#[derive(Default)]
pub(super) struct Filter {
    conditions: Vec<String>,
    params: Vec<Box<dyn Param>>,
}

impl Filter {
    /// Adds a parameter, and returns how the statement names it.
    pub(super) fn bind(&mut self, value: impl Param + 'static) -> String {
        self.params.push(Box::new(value));
        format!("${}", self.params.len())
    }

    /// Adds a condition.
    pub(super) fn add(&mut self, condition: String) {
        self.conditions.push(condition);
    }

    /// All conditions as one.
    pub(super) fn condition(&self) -> String {
        if self.conditions.is_empty() { "true".to_owned() } else { self.conditions.join(" AND ") }
    }

    /// The parameters in their order.
    pub(super) fn params(&self) -> Vec<&dyn Param> {
        self.params.iter().map(|param| &**param).collect()
    }

    /// Adds the condition that the texts of a session contain `word`, or that its conversation is one of `called`.
    pub(super) fn add_word(&mut self, word: &Word, called: Vec<Uuid>) {
        let text = self.bind(storable(&word.text));
        let mut condition = format!("strpos(search_text, {text}) > 0");
        if word.is_indexed {
            condition = format!("({condition} AND trigrams(search_text) @> trigrams({text}))");
        }
        if !called.is_empty() {
            let called = self.bind(called);
            condition = format!("({condition} OR (conversation_id = ANY ({called}) AND conversation_id <> agent_id))");
        }
        self.add(condition);
    }

    /// Adds the condition on the project of a session.
    pub(super) fn add_project(&mut self, project: &ProjectFilter) {
        let agents = self.bind(project.agents.clone());
        let mut any = vec![format!("agent_id = ANY ({agents})")];
        // The paths are compared twice, because the indexes have only their starts.
        if let Some(directory) = &project.directory {
            let directory = directory.trim_end_matches('/');
            // `0` comes after the slash, so these are all paths below the directory.
            let [path, from, to] = ["", "/", "0"].map(|end| self.bind(format!("{directory}{end}")));
            any.push(format!("(left(project, 600) = left({path}, 600) AND project = {path})"));
            any.push(format!(
                "(left(project, 600) >= left({from}, 600) AND left(project, 600) <= left({to}, 600)
                  AND project > {from} AND project < {to})"
            ));
        }
        if let Some(name) = &project.name {
            let reversed = format!("/{name}").chars().rev().collect::<String>();
            let [end, after] =
                [after_prefix(&reversed), Some(reversed)].map(|text| self.bind(text.unwrap_or_default()));
            any.push(format!(
                "(left(reverse(project), 600) >= left({after}, 600) AND left(reverse(project), 600) <= left({end}, 600)
                  AND starts_with(reverse(project), {after}))"
            ));
        }
        self.add(format!("({})", any.join(" OR ")));
    }

    /// Adds the conditions of a query, except those on the agent and the conversation.
    pub(super) fn add_query(&mut self, listing: &SessionQuery, words: &[Word]) {
        if !listing.hidden.is_empty() {
            let hidden = self.bind(listing.hidden.clone());
            self.add(format!("NOT (conversation_id = ANY ({hidden}) AND conversation_id <> agent_id)"));
        }
        if let Some(since) = listing.since {
            let since = self.bind(to_nanos(since));
            self.add(format!("held_at >= {since}"));
        }
        if let Some(until) = listing.until {
            let until = self.bind(to_nanos(until));
            self.add(format!("held_at < {until}"));
        }
        if let Some(source) = &listing.source {
            let source = self.bind(source.clone());
            self.add(format!("source_program = {source}"));
        }
        if let Some(project) = &listing.project {
            self.add_project(project);
        }
        if let Some(tag) = &listing.tag {
            let tag = self.bind(vec![tag.clone()]);
            self.add(format!("tags @> {tag}"));
        }
        for word in words {
            let texts = listing.conversation_texts.iter();
            let called = texts.filter(|(_, text)| text.contains(&*word.text)).map(|(id, _)| *id).collect();
            self.add_word(word, called);
        }
    }
}

/// Returns the least text that comes after all those with a prefix, in the order of their bytes; `None` if there is none.
pub(super) fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            return Some(chars.into_iter().chain([next]).collect());
        }
    }
    None
}

/// Returns the ids of all sessions of a project.
pub(super) async fn ids_of_project(db: &CatalogDb, project: &ProjectFilter) -> Result<Vec<Uuid>> {
    let mut filter = Filter::default();
    filter.add_project(project);
    let sql = format!("SELECT id FROM sessions WHERE {}", filter.condition());
    let rows = db.read_once(&sql, &filter.params()).await?;
    Ok(rows.iter().map(|row: &Row| row.get(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::after_prefix;

    #[test]
    fn the_text_after_a_prefix_is_the_next_one() {
        assert_eq!(after_prefix("ab").as_deref(), Some("ac"));
        assert_eq!(after_prefix("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(after_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!((after_prefix("\u{10ffff}"), after_prefix("")), (None, None));
    }
}
