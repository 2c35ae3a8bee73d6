//! Changes one key in the text of config.toml. Everything else stays as it is, comments included.

use std::ops::Range;

use toml_edit::{Document, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

use crate::named_tables::NAMED_TABLES;

/// Sets `path` to `value`. A new key is written below the line that has it as a comment, else after the last key of its
/// table.
///
/// # Errors
/// A message that follows the key: its place is taken by something that is not a table.
pub(super) fn set_value(text: &str, path: &[Key], value: &Value) -> Result<String, String> {
    let document = Document::parse(text).map_err(|e| e.message().to_owned())?;
    let root = document.as_table();
    let (name, tables) = path.split_last().ok_or("is not a key")?;
    let added = match (find_table(root, tables), tables.first()) {
        (Some(table), first) if table.get(name.get()).is_none() => {
            if first.is_none() || has_header(table) {
                Some(insert_line(text, root, first.map(|_| table), (name, value)))
            } else if table.is_dotted() {
                insert_dotted(text, root, tables, (name, value))
            } else {
                Some(append_table(text, tables, (name, value)))
            }
        }
        (None, Some(first)) if has_space_for_header(root, first, tables) => {
            Some(append_table(text, tables, (name, value)))
        }
        _ => insert_dotted(text, root, tables, (name, value)),
    };
    // A table is better to read than a value on one line.
    let new_table = match value {
        Value::InlineTable(keys) if !tables.is_empty() && find_item(root, path).is_none() => {
            has_space_for_header(root, &path[0], path).then(|| append_keys(text, path, keys))
        }
        _ => None,
    };
    if let Some(added) = new_table.filter(|added| has_table(added, path)) {
        return Ok(added);
    }
    // The text was edited without its grammar: use the result only if it means what it should.
    if let Some(added) = added.filter(|added| has_value(added, path, value)) {
        return Ok(added);
    }
    let mut document: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| e.message().to_owned())?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut is_inline = false;
    for (depth, part) in tables.iter().enumerate() {
        let item = table.entry(part.get()).or_insert_with(|| {
            if is_inline {
                return Value::InlineTable(InlineTable::new()).into();
            }
            let mut new = Table::new();
            new.set_implicit(depth + 1 < tables.len());
            Item::Table(new)
        });
        is_inline = item.is_inline_table();
        table = item.as_table_like_mut().ok_or_else(|| format!("cannot be set: `{}` is not a table", part.get()))?;
    }
    match table.get_mut(name.get()) {
        Some(Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = value.clone();
            *old.decor_mut() = decor;
        }
        Some(Item::Table(_) | Item::ArrayOfTables(_)) => return Err("is a table: set one of its keys".into()),
        _ => {
            table.insert(name.get(), value.clone().into());
        }
    }
    Ok(document.to_string())
}

/// Removes a key, or a table with its keys. Comments on other lines stay. Returns `None` if the text does not have it.
pub(super) fn unset_value(text: &str, path: &[Key]) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let (name, tables) = path.split_last()?;
    let (key, item) = find_table_like(document.as_table(), tables)?.get_key_value(name.get())?;
    let mut lines = Vec::new();
    match item {
        Item::Value(_) => {
            let own = whole_lines(text, key.span().zip(item.span()));
            let above = if tables.is_empty() { None } else { find_table(document.as_table(), tables) };
            // An empty table of these has a meaning: a profile that allows nothing, a host with its defaults. A model without any price is
            // one for which nothing is known.
            let has_meaning = |name: &str| NAMED_TABLES.contains(&name) && name != "prices";
            let above = above.filter(|_| !tables.first().is_some_and(|first| has_meaning(first.get())));
            lines.extend(own.map(|own| with_gap(text, own, above)));
        }
        Item::Table(table) => {
            collect_lines(text, table, &mut lines);
            lines.sort_by_key(|range| range.start);
            // The empty line above the last table of the file.
            if let Some(last) = lines.last_mut().filter(|last| last.end == text.len()) {
                last.start -= usize::from(text[..last.start].ends_with("\n\n"));
            }
        }
        _ => {}
    }
    let mut cut = text.to_owned();
    for range in lines.iter().rev() {
        cut.replace_range(range.clone(), "");
    }
    if !lines.is_empty() && Document::parse(&*cut).is_ok_and(|document| find_item(document.as_table(), path).is_none())
    {
        return Some(cut);
    }
    let mut document: DocumentMut = text.parse().ok()?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in tables {
        table = table.get_mut(part.get())?.as_table_like_mut()?;
    }
    table.remove(name.get())?;
    Some(document.to_string())
}

/// Adds to the lines of a key what [`set_value`] writes around a new one: an empty line below the first key above all tables, and the header
/// of a table at the end of the file that has no other key, with the empty line above it.
fn with_gap(text: &str, own: Range<usize>, table: Option<&Table>) -> Range<usize> {
    let before = &text[..own.start];
    if (before.is_empty() || before.ends_with("\n\n")) && text[own.end..].starts_with('\n') {
        return own.start..own.end + 1;
    }
    let header = table.filter(|table| has_header(table)).and_then(Table::span);
    match header.map(|span| line_start(text, span.start)..line_end(text, span.start)) {
        Some(header) if header.end == own.start && own.end == text.len() => {
            header.start - usize::from(text[..header.start].ends_with("\n\n"))..own.end
        }
        _ => own,
    }
}

/// Returns the value of a key as it is written.
pub(super) fn written_value(text: &str, path: &[Key]) -> Option<String> {
    let document = Document::parse(text).ok()?;
    find_item(document.as_table(), path)?.as_value().map(bare_text)
}

fn bare_text(value: &Value) -> String {
    value.clone().decorated("", "").to_string()
}

fn has_value(text: &str, path: &[Key], value: &Value) -> bool {
    written_value(text, path).is_some_and(|written| written == bare_text(value))
}

fn has_table(text: &str, path: &[Key]) -> bool {
    Document::parse(text).is_ok_and(|document| find_table(document.as_table(), path).is_some())
}

fn find_item<'a>(root: &'a Table, path: &[Key]) -> Option<&'a Item> {
    let (name, tables) = path.split_last()?;
    find_table_like(root, tables)?.get(name.get())
}

fn find_table_like<'a>(root: &'a Table, path: &[Key]) -> Option<&'a dyn TableLike> {
    path.iter().try_fold(root as &dyn TableLike, |table, part| table.get(part.get())?.as_table_like())
}

fn find_table<'a>(root: &'a Table, path: &[Key]) -> Option<&'a Table> {
    path.iter().try_fold(root, |table, part| table.get(part.get())?.as_table())
}

/// Returns true if the table is written as `[table]`, and not as the start of dotted keys or of headers of other tables.
fn has_header(table: &Table) -> bool {
    !table.is_implicit() && !table.is_dotted() && table.span().is_some()
}

/// Returns true if a header for `tables` can be appended: nothing but other headers has the names above.
fn has_space_for_header(root: &Table, first: &Key, tables: &[Key]) -> bool {
    let parents = tables.len() - 1;
    match root.get(first.get()) {
        None => true,
        Some(_) => (1..=parents).all(|depth| match find_table(root, &tables[..depth]) {
            Some(table) => !table.is_dotted(),
            None => find_table_like(root, &tables[..depth]).is_none(),
        }),
    }
}

/// Inserts a line into the table `[table]`, or above the first table if there is no `table`.
fn insert_line(text: &str, root: &Table, table: Option<&Table>, (name, value): (&Key, &Value)) -> String {
    let line = format!("{} = {}\n", name.display_repr(), bare_text(value));
    let mut headers = Vec::new();
    collect_headers(root, &mut headers);
    let start = table.and_then(|table| table.span()).map_or(0, |span| span.start);
    let end = headers.into_iter().filter(|at| *at > start || (table.is_none() && *at == start)).min();
    let end = end.map_or(text.len(), |at| line_start(text, at));
    let keys = table.unwrap_or(root);
    let last = keys.iter().filter_map(|(_, item)| item.as_value()?.span()).map(|span| span.end).max();
    let commented = commented_line(&text[start..end], name.get()).map(|at| start + at);
    let place = match (commented, last) {
        (Some(place), _) => place,
        (None, Some(last)) => line_end(text, last),
        (None, None) if table.is_some() => line_end(text, start),
        // Below the comment at the top of the file, unless it belongs to the first table.
        (None, None) => text[..end].find("\n\n").map_or(0, |at| at + 2),
    };
    let gap = if last.is_none() && table.is_none() && commented.is_none() && place < text.len() { "\n" } else { "" };
    let before = if place > 0 && !text[..place].ends_with('\n') { "\n" } else { "" };
    format!("{}{before}{line}{gap}{}", &text[..place], &text[place..])
}

/// Inserts a line below the last key of a table that is written with dotted keys, in the same way.
fn insert_dotted(text: &str, root: &Table, tables: &[Key], (name, value): (&Key, &Value)) -> Option<String> {
    let known = |depth: &usize| find_table(root, &tables[..*depth]).is_some();
    let depth = (1..=tables.len()).rev().find(known)?;
    let table = find_table(root, &tables[..depth]).filter(|table| table.is_dotted())?;
    let spans = |(key, item): (&str, &Item)| Some((table.key(key)?.span()?, item.as_value()?.span()?));
    let (key, last) = table.iter().filter_map(spans).max_by_key(|(_, value)| value.end)?;
    let line = whole_lines(text, Some((key.clone(), last)))?;
    let path: Vec<_> = tables[depth..].iter().chain([name]).map(|part| part.display_repr()).collect();
    let (before, end) = (&text[line.start..key.start], if text[..line.end].ends_with('\n') { "" } else { "\n" });
    let added = format!("{end}{before}{} = {}\n", path.join("."), bare_text(value));
    Some(format!("{}{added}{}", &text[..line.end], &text[line.end..]))
}

/// Returns the end of the line that has `name` as a comment: `#name = …`.
fn commented_line(text: &str, name: &str) -> Option<usize> {
    let mut end = 0;
    text.split_inclusive('\n').find_map(|line| {
        end += line.len();
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix(name)?;
        rest.trim_start().starts_with('=').then_some(end)
    })
}

fn append_table(text: &str, tables: &[Key], (name, value): (&Key, &Value)) -> String {
    append_lines(text, tables, &format!("{} = {}\n", name.display_repr(), bare_text(value)))
}

fn append_keys(text: &str, tables: &[Key], keys: &InlineTable) -> String {
    let lines = keys.iter().map(|(name, value)| format!("{} = {}\n", Key::new(name).display_repr(), bare_text(value)));
    append_lines(text, tables, &lines.collect::<String>())
}

fn append_lines(text: &str, tables: &[Key], lines: &str) -> String {
    let header: Vec<_> = tables.iter().map(|part| part.display_repr()).collect();
    let gap = match text {
        "" => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}[{}]\n{lines}", header.join("."))
}

/// Collects the offsets of the headers below `table`.
fn collect_headers(table: &Table, offsets: &mut Vec<usize>) {
    for (_, item) in table {
        if let Item::Table(inner) = item {
            offsets.extend(inner.span().filter(|_| has_header(inner)).map(|span| span.start));
            collect_headers(inner, offsets);
        }
    }
}

/// Collects the lines of a table: its header, its keys and what is between them, and the same of the tables in it. Between dotted keys of a table
/// without a header may be those of other tables, so each is on its own.
fn collect_lines(text: &str, table: &Table, lines: &mut Vec<Range<usize>>) {
    let mut own: Option<Range<usize>> =
        table.span().filter(|_| has_header(table)).map(|span| line_start(text, span.start)..line_end(text, span.start));
    let is_dotted = own.is_none();
    for (name, item) in table {
        match item {
            Item::Table(inner) => collect_lines(text, inner, lines),
            Item::Value(value) => {
                let key = table.key(name).and_then(Key::span);
                let Some(range) = whole_lines(text, key.zip(value.span())) else { continue };
                if is_dotted {
                    lines.push(range);
                    continue;
                }
                own = Some(own.map_or(range.clone(), |own| own.start.min(range.start)..own.end.max(range.end)));
            }
            _ => {}
        }
    }
    // Dotted keys of the table may be among its other lines.
    if let Some(own) = own {
        lines.retain(|range| range.start < own.start || range.end > own.end);
        lines.push(own);
    }
}

/// Returns the lines of a key and its value if nothing else is on them but a comment.
fn whole_lines(text: &str, spans: Option<(Range<usize>, Range<usize>)>) -> Option<Range<usize>> {
    let (key, value) = spans?;
    let (start, end) = (line_start(text, key.start), line_end(text, value.end));
    let after = text[value.end..end].trim();
    let is_alone = !text[start..key.start].contains([',', '{', '=']) && (after.is_empty() || after.starts_with('#'));
    is_alone.then_some(start..end)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the offset behind the line's end.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, key: &str, value: &str) -> String {
        set_value(text, &Key::parse(key).unwrap(), &value.parse().unwrap()).unwrap()
    }

    fn unset(text: &str, key: &str) -> Option<String> {
        unset_value(text, &Key::parse(key).unwrap())
    }

    #[test]
    fn the_rest_of_the_file_stays() {
        for (text, key, value, whole) in [
            ("", "a", "1", "a = 1\n"),
            ("a = 2  # two\n", "a", "1", "a = 1  # two\n"),
            ("# top\n\n[t]\nb = 1\n", "a", "1", "# top\n\na = 1\n\n[t]\nb = 1\n"),
            ("# of t\n[t]\nb = 1\n", "a", "1", "a = 1\n\n# of t\n[t]\nb = 1\n"),
            ("# text\n#a = 3\n#c = 4\n\n[t]\n", "a", "1", "# text\n#a = 3\na = 1\n#c = 4\n\n[t]\n"),
            ("[t]\n# about\n# a = 3\n\n[u]\n", "t.a", "1", "[t]\n# about\n# a = 3\na = 1\n\n[u]\n"),
            ("[t]\nb = 1 # one\n\n# of u\n[u]\nc = 1\n", "t.a", "2", "[t]\nb = 1 # one\na = 2\n\n# of u\n[u]\nc = 1\n"),
            ("[t]\n\n[u]\na = 1", "u.b", "2", "[t]\n\n[u]\na = 1\nb = 2\n"),
            ("x = 1", "t.a", "2", "x = 1\n\n[t]\na = 2\n"),
            ("[p.a]\nk = 1\n# end\n", "p.b.k", "2", "[p.a]\nk = 1\n# end\n\n[p.b]\nk = 2\n"),
            ("t = { b = 1 } # inline\n", "t.a", "2", "t = { b = 1 , a = 2 } # inline\n"),
            ("t.b = 1\n", "t.a", "2", "t.b = 1\nt.a = 2\n"),
            ("[p]\n", "p.\"a/b\".in", "0.5", "[p]\n\n[p.\"a/b\"]\nin = 0.5\n"),
            ("[x]\n", "p.a", "{ k = 1, l = [2] }", "[x]\n\n[p.a]\nk = 1\nl = [2]\n"),
            ("p = { b = { k = 1 } }\n", "p.a", "{ k = 1 }", "p = { b = { k = 1 } , a = { k = 1 } }\n"),
            ("s = \"\"\"\n[t]\n\"\"\"\n[t]\n", "t.a", "2", "s = \"\"\"\n[t]\n\"\"\"\n[t]\na = 2\n"),
        ] {
            assert_eq!(set(text, key, value), whole, "{text:?} {key}");
        }
        let path = Key::parse("a.b").unwrap();
        assert!(set_value("a = 1\n", &path, &2.into()).unwrap_err().contains("is not a table"));
    }

    #[test]
    fn only_the_lines_of_the_key_are_removed() {
        for (text, key, whole) in [
            ("# top\n\n# about a\na = 1 # one\nb = 2\n", "a", "# top\n\n# about a\nb = 2\n"),
            ("[t]\n# about\na = [\n  1,\n]\nb = 2\n", "t.a", "[t]\n# about\nb = 2\n"),
            ("t = { a = 1, b = 2 }\n", "t.a", "t = { b = 2 }\n"),
            ("# p\n[p.a]\n# key\nk = 1\n\n[p.b]\nk = 2\n", "p.a", "# p\n\n[p.b]\nk = 2\n"),
            ("[p.a]\nk = 1\n[x]\ny = 1\n[p.a.c]\nz = 1\n", "p.a", "[x]\ny = 1\n"),
            ("t.a = 1\nt.b = 2\n", "t.a", "t.b = 2\n"),
            ("t.a = 1\nu.a = 2\nt.b = 3\nv = 4\n", "t", "u.a = 2\nv = 4\n"),
            ("[d]\nt.a = 1\n# of u\nu.a = 2\nt.b = 3\n", "d.t", "[d]\n# of u\nu.a = 2\n"),
            ("[d]\nt.a = 1\nb = 2\nt.c = 3\n[e]\n", "d", "[e]\n"),
        ] {
            assert_eq!(unset(text, key).as_deref(), Some(whole), "{text:?} {key}");
        }
        assert_eq!(unset("a = 1\n", "b"), None);
        assert_eq!(unset("a = 1\n", "a.b"), None);
    }
}
