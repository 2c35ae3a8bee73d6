//! Properties of edits, on random texts.

use std::collections::BTreeMap;

use toml_edit::{Document, Item, Key, TableLike};

use super::text_edit::{set_value, unset_value};

/// Random numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap_or(0)]
    }
}

const NAMES: [&str; 6] = ["a", "b", "c", "t", "u", "\"x/y\""];

/// Lines of a table: keys, dotted keys, inline tables, comments and empty lines.
fn lines(random: &mut Random, text: &mut String) {
    for _ in 0..random.below(6) {
        let (name, inner) = (random.pick(&NAMES), random.pick(&NAMES));
        let line = match random.below(8) {
            0 => "# about it".to_owned(),
            1 => format!("#{name} = 7"),
            2 => String::new(),
            3 | 4 => format!("{name}.{inner} = {}", random.below(9)),
            5 => format!("{name} = {{ {inner} = 1 }}"),
            6 => format!("{name} = [\n  1, # one\n]"),
            _ => format!("{name} = \"z\" # text"),
        };
        text.push_str(&line);
        text.push('\n');
    }
}

/// A valid text whose last table has a key.
fn text(random: &mut Random) -> Option<String> {
    let mut text = String::new();
    lines(random, &mut text);
    for _ in 0..random.below(4) {
        let (first, second) = (random.pick(&NAMES), random.pick(&NAMES));
        text.push_str(&if random.below(2) == 0 { format!("[{first}]\n") } else { format!("[{first}.{second}]\n") });
        lines(random, &mut text);
    }
    text.push_str(if text.contains("\n[") || text.starts_with('[') { "last = 1\n" } else { "" });
    Document::parse(&*text).is_ok().then_some(text)
}

fn path(random: &mut Random) -> Vec<Key> {
    (0..=random.below(3)).map(|_| Key::parse(random.pick(&NAMES)).unwrap().remove(0)).collect()
}

/// All values with their paths.
fn flatten(table: &dyn TableLike, above: &str, found: &mut BTreeMap<String, String>) {
    for (name, item) in table.iter() {
        let name = format!("{above}/{name}");
        match item {
            Item::Value(value) if !value.is_inline_table() => {
                _ = found.insert(name, value.to_string().trim().to_owned())
            }
            item => item.as_table_like().into_iter().for_each(|inner| flatten(inner, &name, found)),
        }
    }
}

fn values(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    flatten(Document::parse(text).unwrap().as_table(), "", &mut found);
    found
}

fn joined(path: &[Key]) -> String {
    path.iter().map(|part| format!("/{}", part.get())).collect()
}

/// Returns true if the key needs a new table in one that has no header: the new one may come between others, and stays when it is empty.
fn is_new_below_dotted(text: &str, path: &[Key]) -> bool {
    let document = Document::parse(text).unwrap();
    let mut table = document.as_table();
    for part in &path[..path.len() - 1] {
        match table.get(part.get()) {
            Some(Item::Table(inner)) => table = inner,
            // A table on one line: those in it are on that line, too.
            Some(_) => return path.len() > 2,
            None => return table.is_dotted(),
        }
    }
    false
}

#[test]
fn a_key_that_is_set_and_unset_leaves_the_same_bytes() {
    let (mut random, mut tried) = (Random(7), 0);
    while tried < 4000 {
        let (Some(text), path) = (text(&mut random), path(&mut random)) else { continue };
        let name = joined(&path);
        let known = values(&text).into_keys().any(|key| key == name || key.starts_with(&format!("{name}/")));
        if known || is_new_below_dotted(&text, &path) {
            continue;
        }
        let Ok(set) = set_value(&text, &path, &1.into()) else { continue };
        assert_eq!(values(&set).get(&name).map(String::as_str), Some("1"), "{text:?} {name}");
        assert_eq!(unset_value(&set, &path).as_deref(), Some(&*text), "{text:?} {name} {set:?}");
        tried += 1;
    }
}

#[test]
fn only_the_values_of_a_key_are_removed() {
    let (mut random, mut tried) = (Random(11), 0);
    while tried < 4000 {
        let (Some(text), path) = (text(&mut random), path(&mut random)) else { continue };
        let Some(unset) = unset_value(&text, &path) else { continue };
        let name = joined(&path);
        let mut left = values(&text);
        left.retain(|key, _| *key != name && !key.starts_with(&format!("{name}/")));
        assert_eq!(values(&unset), left, "{text:?} {name}");
        tried += 1;
    }
}
