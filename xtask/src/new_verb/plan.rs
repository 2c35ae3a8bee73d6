//! Which files change and how.

use std::collections::BTreeMap;
use std::path::Path;

use super::edit::{at_end_of_block, before_first, behind_last, import, module};
use super::names::Names;
use super::snippets::{self, Idiom};
use crate::error::{Error, Result};
use crate::workspace::{names as entries, read};

const METHODS: &str = "proto/src/methods";
const GOLDEN: &str = "proto/golden/v1";
const GOLDEN_TEST: &str = "proto/tests/golden.rs";
const OPS: &str = "chorusd/crates/engine/src/ops";
const DISPATCH: &str = "chorusd/src/server/dispatch.rs";
const COMMANDS: &str = "chorusctl/src/commands";
const TESTS: &str = "tests/e2e";
const SCHEMA: &str = "tests/harness/schema.rs";
const PAGE: &str = "docs/PROTOCOL.md";

/// Everything that a new verb writes.
#[derive(Debug)]
pub struct Plan {
    /// The new text of each file, by its path from the root.
    pub files: BTreeMap<String, String>,
    /// Places that were not recognized, with what belongs there.
    pub by_hand: Vec<(String, String)>,
}

impl Plan {
    pub fn new(root: &Path, names: &Names) -> Result<Self> {
        let mut drafts = Drafts { root, names, plan: Self { files: BTreeMap::new(), by_hand: Vec::new() } };
        drafts.refuse_known()?;
        drafts.wire()?;
        drafts.daemon()?;
        drafts.client()?;
        drafts.tests()?;
        Ok(drafts.plan)
    }
}

/// The plan while it is made.
struct Drafts<'a> {
    root: &'a Path,
    names: &'a Names,
    plan: Plan,
}

impl Drafts<'_> {
    /// Refuses a verb that is there, and a noun that is a command without verbs.
    fn refuse_known(&self) -> Result<()> {
        let Names { noun, verb, .. } = self.names;
        let quoted = format!("\"{noun}.{verb}\"");
        for file in self.rust_files(METHODS)? {
            if read(&self.root.join(&file))?.contains(&quoted) {
                return Err(
                    Error::new(format!("there is a verb {noun}.{verb} already: {file}")).hint("use another name")
                );
            }
        }
        for (folder, what) in [(COMMANDS, "a command"), (OPS, "an op")] {
            let single = format!("{folder}/{noun}.rs");
            if self.exists(&single) {
                return Err(Error::new(format!("`{noun}` is {what} without verbs: {single}")).hint(format!(
                    "move that file to {folder}/{noun}/mod.rs and give it verbs first, or use another noun"
                )));
            }
        }
        for folder in [COMMANDS, OPS] {
            let file = format!("{folder}/{noun}/{verb}.rs");
            if self.exists(&file) {
                return Err(Error::new(format!("{file} is there already")).hint("use another name"));
            }
        }
        Ok(())
    }

    fn wire(&mut self) -> Result<()> {
        let Names { noun, verb, verb_type, .. } = self.names;
        let file = format!("{METHODS}/{noun}.rs");
        if self.exists(&file) {
            let method = snippets::wire_method(self.names);
            self.change(&file, &method, |text| {
                let last = text.rfind("\nmethod!(")?;
                let end = last + text[last..].find("\n);\n")? + "\n);\n".len();
                Some(format!("{}{method}\n{}", &text[..end], &text[end..]))
            })?;
            let types = snippets::wire_types(self.names);
            self.change(&file, &types, |text| {
                let end = text.find("\n#[cfg(test)]").unwrap_or(text.len());
                let (code, tests) = text.split_at(end);
                Some(format!("{code}{types}{tests}"))
            })?;
        } else {
            self.create(file, snippets::wire_file(self.names));
            self.add_module(&format!("{METHODS}/mod.rs"), "pub mod", noun)?;
        }
        let (request, result) = snippets::golden(self.names);
        self.create(format!("{GOLDEN}/{noun}.{verb}.request.json"), request);
        self.create(format!("{GOLDEN}/{noun}.{verb}.result.json"), result);
        for (file, start) in [(GOLDEN_TEST, "method_case::<"), (SCHEMA, "all.add_method::<")] {
            self.add_import(file)?;
            let line = match start {
                "method_case::<" => format!("method_case::<{noun}::{verb_type}>(),"),
                _ => format!("all.add_method::<{noun}::{verb_type}>();"),
            };
            self.change(file, &line, |text| self_or_any(text, &line, start, noun))?;
        }
        let row = snippets::page_row(self.names);
        self.change(PAGE, &row, |text| self_or_any(text, &row, "| `", &format!("{noun}.")))
    }

    fn daemon(&mut self) -> Result<()> {
        let Names { noun, verb, verb_type, .. } = self.names;
        let idiom = self.ops_idiom()?;
        self.create(format!("{OPS}/{noun}/{verb}.rs"), snippets::op(self.names, &idiom));
        let group = format!("{OPS}/{noun}/mod.rs");
        if self.exists(&group) {
            self.add_module(&group, "pub mod", verb)?;
        } else {
            self.create(group, format!("//! `{noun}.*`.\n\npub mod {verb};\n"));
            self.add_module(&format!("{OPS}/mod.rs"), "pub mod", noun)?;
        }
        self.add_import(DISPATCH)?;
        let row = format!("inline {noun}::{verb_type} => {noun}::{verb}::{verb}(home);");
        self.change(DISPATCH, &row, |text| {
            behind_last(text, &row, |line| line.starts_with(&format!("inline {noun}::")))
                .or_else(|| behind_last(text, &row, |line| line.starts_with("inline ")))
        })
    }

    fn client(&mut self) -> Result<()> {
        let Names { noun, verb, noun_type, .. } = self.names;
        let top = format!("{COMMANDS}/mod.rs");
        let idiom = self.command_idiom(&top)?;
        self.create(format!("{COMMANDS}/{noun}/{verb}.rs"), snippets::command(self.names, &idiom));
        let group = format!("{COMMANDS}/{noun}/mod.rs");
        if self.exists(&group) {
            self.add_module(&group, "pub mod", verb)?;
            let variant = snippets::variant(self.names);
            self.change(&group, &variant, |text| at_end_of_block(text, "enum Verb ", &variant))?;
            self.add_arm(&group)?;
        } else {
            self.create(group, snippets::group(self.names));
            self.add_module(&top, "pub mod", noun)?;
            let variant = format!("/// TODO: say what the group is for\n{noun_type}({noun}::Args),");
            self.change(&top, &variant, |text| at_end_of_block(text, "enum Command {", &variant))?;
            let arm = format!("Command::{noun_type}(args) => {noun}::run(args, app),");
            self.change(&top, &arm, |text| behind_last(text, &arm, |line| line.starts_with("Command::")))?;
            let (last_group, name) = ("(\"System\", &[", format!("\"{noun}\", "));
            self.change(&format!("{COMMANDS}/help_groups.rs"), &name, |text| {
                text.contains(last_group).then(|| text.replacen(last_group, &format!("{last_group}{name}"), 1))
            })?;
        }
        Ok(())
    }

    /// Adds the arm of a verb to a group that forwards by hand; `group!` makes its own.
    fn add_arm(&mut self, group: &str) -> Result<()> {
        if read(&self.root.join(group))?.contains("group! {") {
            return Ok(());
        }
        let Names { verb, verb_type, .. } = self.names;
        let plain = format!("Verb::{verb_type}(args) => {verb}::run(args, app),");
        let optional = format!("Some(Verb::{verb_type}(args)) => {verb}::run(args, app),");
        self.change(group, &plain, |text| {
            behind_last(text, &plain, |line| line.starts_with("Verb::") && line.contains("::run("))
                .or_else(|| behind_last(text, &optional, |line| line.starts_with("Some(Verb::")))
        })
    }

    fn tests(&mut self) -> Result<()> {
        let Names { noun, verb, .. } = self.names;
        let group = format!("{TESTS}/{noun}/mod.rs");
        self.create(format!("{TESTS}/{noun}/{verb}.rs"), snippets::test(self.names));
        if self.exists(&group) {
            return self.add_module(&group, "mod", verb);
        }
        self.create(group, format!("//! `{noun}`.\n\nmod {verb};\n"));
        self.add_module(&format!("{TESTS}/main.rs"), "mod", noun)
    }

    /// Finds the import that the ops of other verbs have in common.
    fn ops_idiom(&self) -> Result<Idiom> {
        for folder in entries(&self.root.join(OPS), |path| path.is_dir().then(|| path.display().to_string()))? {
            for file in entries(Path::new(&folder), |path| path.is_file().then(|| path.display().to_string()))? {
                let text = read(Path::new(&file))?;
                if let Some(result) = import_of(&text, "Result") {
                    return Ok(Idiom { imports: vec![result], error: String::new() });
                }
            }
        }
        Err(unknown(OPS, "an op that imports `Result`"))
    }

    /// Reads the types of a command off the function that runs all of them.
    fn command_idiom(&self, top: &str) -> Result<Idiom> {
        let text = read(&self.root.join(top))?;
        let error = text.split("Result<(), ").nth(1).and_then(|rest| rest.split('>').next()).unwrap_or_default();
        match [import_of(&text, "App"), import_of(&text, error)] {
            [Some(app), Some(of_error)] => Ok(Idiom { imports: vec![app, of_error], error: error.into() }),
            _ => Err(unknown(top, "imports of `App` and of the error type of `run`")),
        }
    }

    fn rust_files(&self, folder: &str) -> Result<Vec<String>> {
        let files = entries(&self.root.join(folder), |path| {
            path.file_name().filter(|_| path.is_file()).map(|name| name.to_string_lossy().into_owned())
        })?;
        Ok(files.into_iter().map(|name| format!("{folder}/{name}")).collect())
    }

    fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    fn create(&mut self, path: String, text: String) {
        self.plan.files.insert(path, text);
    }

    fn add_module(&mut self, path: &str, keyword: &str, name: &str) -> Result<()> {
        self.change(path, &format!("{keyword} {name};"), |text| module(text, keyword, name))
    }

    /// Adds a new noun to the imports of a file; one that is known stands there.
    fn add_import(&mut self, path: &str) -> Result<()> {
        let noun = &self.names.noun;
        if self.exists(&format!("{METHODS}/{noun}.rs")) {
            return Ok(());
        }
        let code = format!("use chorus_proto::methods::{noun};");
        self.change(path, &code, |text| import(text, "chorus_proto::methods", noun))
    }

    /// Changes a file; if `edit` does not find its place, `code` is left to whoever asked.
    fn change(&mut self, path: &str, code: &str, edit: impl FnOnce(&str) -> Option<String>) -> Result<()> {
        let now = match self.plan.files.get(path) {
            Some(text) => text.clone(),
            None if self.exists(path) => read(&self.root.join(path))?,
            None => String::new(),
        };
        match edit(&now) {
            Some(text) => _ = self.plan.files.insert(path.to_owned(), text),
            None => self.plan.by_hand.push((path.to_owned(), code.to_owned())),
        }
        Ok(())
    }
}

/// Adds a line behind the last of the same noun, else behind the last of any.
fn self_or_any(text: &str, line: &str, start: &str, noun: &str) -> Option<String> {
    let own = format!("{start}{noun}");
    let is_method = |row: &str| row.starts_with(start) && (start != "| `" || row.contains(".") && row.contains("` |"));
    behind_last(text, line, |row| is_method(row) && row.starts_with(&own)).or_else(|| match start {
        // Rows of other tables look the same.
        "| `" => before_first(text, line, |row| row.starts_with("| `trash.")),
        _ => behind_last(text, line, is_method),
    })
}

/// Returns a `use` line that brings `name` alone into scope, taken from one that may bring more.
fn import_of(text: &str, name: &str) -> Option<String> {
    text.lines().filter(|line| line.starts_with("use ")).find_map(|line| {
        let path = line.strip_prefix("use ")?.strip_suffix(';')?;
        let alone = path.ends_with(&format!("::{name}"));
        let (parent, group) = path.split_once("::{").unwrap_or((path, ""));
        let listed = group.trim_end_matches('}').split(", ").any(|item| item == name);
        match (alone, listed) {
            (true, _) => Some(line.to_owned()),
            (_, true) => Some(format!("use {parent}::{name};")),
            _ => None,
        }
    })
}

fn unknown(place: &str, what: &str) -> Error {
    Error::new(format!("{place} has no {what}")).hint("tell xtask/src/new_verb/plan.rs where it is now")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    /// Whoever moves a place that a verb touches teaches the plan where it is now.
    #[test]
    fn every_place_is_found() {
        for noun in ["trash", "models", "tasks", "weather"] {
            let plan = Plan::new(&root().unwrap(), &Names::new(noun, "weigh").unwrap()).unwrap();
            assert!(plan.by_hand.is_empty(), "{noun}: not found: {:#?}", plan.by_hand);
            let own = plan.files.keys().filter(|path| path.contains(&format!("{noun}/weigh.rs"))).count();
            assert_eq!(own, 3, "{noun}: an op, a command and a test: {:?}", plan.files.keys());
        }
    }

    /// The code of the snippets uses what is still called so.
    #[test]
    fn the_snippets_speak_as_the_code_around_them() {
        let root = root().unwrap();
        for (file, code) in [
            ("chorusctl/src/commands/trash/list.rs", "app.call_and_print::<"),
            ("chorusctl/src/commands/trash/empty.rs", "app.stdout.status_line("),
            ("chorusctl/src/commands/group.rs", "enum Verb {"),
            ("chorusctl/src/commands/trash/mod.rs", "group! {\n"),
            ("chorusd/crates/engine/src/ops/trash/list.rs", "(home: &Path, _: ListParams) -> Result<ListResult>"),
            ("proto/src/methods/trash.rs", "= \"trash.empty\", EmptyParams => EmptyResult"),
            ("tests/harness/ctl.rs", "pub fn chorusctl<"),
            ("tests/harness/daemon.rs", "pub fn start("),
            ("tests/e2e/main.rs", "fn home()"),
        ] {
            let text = read(&root.join(file)).unwrap();
            assert!(text.contains(code), "{file} has no `{code}`: change xtask/src/new_verb/snippets.rs with it");
        }
    }

    #[test]
    fn what_is_there_is_refused() {
        for (noun, verb, due) in [("trash", "empty", "already"), ("usage", "weigh", "without verbs")] {
            let error = Plan::new(&root().unwrap(), &Names::new(noun, verb).unwrap()).unwrap_err().to_string();
            assert!(error.contains(due) && error.contains("hint: "), "{error}");
        }
    }

    #[test]
    fn imports_are_found_alone_and_in_lists() {
        let text = "use a::b::Result;\nuse a::{Failure, Ops};\n";
        assert_eq!(import_of(text, "Result").unwrap(), "use a::b::Result;");
        assert_eq!(import_of(text, "Ops").unwrap(), "use a::Ops;");
        assert_eq!(import_of(text, "App"), None);
    }
}
