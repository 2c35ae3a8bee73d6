//! A command of the shell, taken apart into what is judged.

mod chars;
mod git_dir;
mod handover;
mod loose;
mod paths;
mod plain;
mod programs;
mod reviewed;
mod tree;
mod unpack;
mod variables;

pub use paths::WorkspacePaths;
pub use reviewed::check as reviewed;

use paths::Directory;
use plain::{Simple, Word};

use super::action::{Action, BASH};

/// Longer commands are not taken apart, in bytes.
const MAX: usize = 64 << 10;

/// How many substitutions are looked for beside those that the parser finds.
const INNER: usize = 256;
/// How much of each is looked at, in bytes.
const INNER_LENGTH: usize = 4 << 10;

/// How many files a command may name after which those that it names in other directories are not listed any more.
const FILES: usize = 256;

const TOO_LONG: &str = "it is too long to be taken apart";
const DIFFER: &str = "it can be read in two ways";

/// A command, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// What is judged by itself.
    pub pieces: Vec<Piece>,
    /// Actions that it may come to, for rules that deny or ask.
    pub hidden: Vec<String>,
    /// Why all of it is never better than `ask`; to be read after "it is asked about because".
    pub guard: Option<String>,
}

/// One action in a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// As all rules see it.
    pub action: String,
    /// How else it may be written: only rules that deny or ask see these.
    pub forms: Vec<String>,
    /// Why it is never better than `ask`.
    pub guard: Option<String>,
    /// The parts that a rule must spell out to allow it; `None` if it is not a command.
    pub call: Option<Call>,
}

/// A command as rules that allow it see it.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub words: Vec<String>,
    /// Bytes of the command up to the end of its program.
    pub program: usize,
    /// Bytes of the command up to the end of the last word that hands over, and what that does.
    pub hands_over: Option<(usize, String)>,
}

/// Takes a command apart that runs in `workspace`. A command without a `guard` is only what its pieces say.
#[must_use]
pub fn read(command: &str, workspace: &WorkspacePaths) -> Script {
    if command.len() > MAX {
        return unreadable(command, TOO_LONG, workspace);
    }
    let found = match tree::find(command) {
        Ok(found) => found,
        Err(why) => return unreadable(command, why, workspace),
    };
    let mut script = match plain::read(command) {
        Ok(simple) if simple.iter().filter_map(|simple| simple.span.clone()).eq(found.commands.iter().cloned()) => {
            plainly(command, simple, workspace)
        }
        Ok(simple) => {
            let mut script = searched(command, &found, DIFFER, workspace);
            let other = plainly(command, simple, workspace);
            script.hidden.extend(other.hidden);
            script
                .hidden
                .extend(other.pieces.into_iter().flat_map(|piece| [vec![piece.action], piece.forms]).flatten());
            script
        }
        Err(why) => searched(command, &found, why, workspace),
    };
    // Also what stands between the pieces; without quotes it is what was typed.
    if command.contains(['\'', '"', '\\', '$', '`', '{']) || script.guard.is_some() {
        script.hidden.push([BASH, &loose::loosen(command)].concat());
    }
    script
}

/// A command that two readers understood alike.
fn plainly(text: &str, commands: Vec<Simple>, workspace: &WorkspacePaths) -> Script {
    let mut script = Script::default();
    let (mut moved, mut named) = (false, 0);
    let mut from = Directory::start(workspace);
    for simple in commands {
        let words: Vec<&str> = simple.words.iter().map(|word| &*word.value).collect();
        moved |= programs::moves(&words);
        let raw = simple.span.clone().and_then(|span| text.get(span)).unwrap_or_default();
        let git_dir = git_dir::guard(words.iter().copied().chain(simple.reads()));
        let mut also = Vec::new();
        if !simple.files.is_empty() || simple.extent.len() > raw.len() {
            redirected(text, &simple, &mut also);
        }
        if raw.is_empty() {
            script.guard = script.guard.or(git_dir);
            script.hidden.append(&mut also);
        } else {
            let guard = variables::guard(&simple.assigned)
                .or_else(|| programs::guard(&words))
                .or_else(|| unpack::guard(&words))
                .or(git_dir)
                .or_else(|| programs::elsewhere(&words).filter(|_| moved))
                .or_else(|| simple.words.first().and_then(obscure));
            let action = match simple.words.is_empty() {
                true => raw.to_owned(),
                false => simple.words.iter().map(|word| written(&word.value)).collect::<Vec<_>>().join(" "),
            };
            let call = call(&simple.words, &words);
            let runs_others = guard.is_some() || call.as_ref().is_some_and(|call| call.hands_over.is_some());
            let mut forms = forms(&action, raw, runs_others);
            let action = Action::Bash { command: &action }.to_string();
            forms.extend(also.into_iter().filter(|form| *form != action));
            script.pieces.push(Piece { action, forms, guard, call });
        }
        let outputs = programs::writes(&words);
        named += simple.files.len() + outputs.len();
        if moved && named > FILES {
            from.lose();
        }
        for path in simple.reads() {
            view(path, &from, &mut script.hidden);
            script.guard = script.guard.or_else(|| from.guard(path).map(str::to_owned));
        }
        let writes = simple.writes().map(str::to_owned).chain(outputs);
        script.pieces.extend(writes.filter_map(|path| write(&path, &from, moved.then_some(MOVED))));
        from.follow(&words);
    }
    script
}

/// Notes a command with its redirections: as it stands, and behind its words.
fn redirected(text: &str, simple: &Simple, out: &mut Vec<String>) {
    hide(text.get(simple.extent.clone()).unwrap_or_default(), loose::names, out);
    let words = simple.words.iter().map(|word| written(&word.value));
    let files = simple.files.iter().flat_map(|file| [file.operator.to_owned(), written(&file.path)]);
    let behind = words.chain(files).collect::<Vec<_>>().join(" ");
    let behind = [BASH, &behind].concat();
    if !out.contains(&behind) {
        out.push(behind);
    }
}

/// Returns the parts that a rule must spell out of the command with these words.
fn call(words: &[Word], values: &[&str]) -> Option<Call> {
    let to = |at: usize| words.iter().take(at + 1).map(|word| written(&word.value).len() + 1).sum::<usize>() - 1;
    let hands_over = handover::find(values).map(|found| (to(found.at), found.reason));
    let words: Vec<String> = values.iter().map(|word| (*word).to_owned()).collect();
    (!words.is_empty()).then(|| Call { program: to(0), words, hands_over })
}

/// A command that only the parser understood: what is denied in it is found, and nothing of it is allowed.
fn searched(text: &str, found: &tree::Found, why: &str, workspace: &WorkspacePaths) -> Script {
    let mut script = Script { guard: Some(why.to_owned()), ..Script::default() };
    let mut from = Directory::anywhere(workspace);
    let read = |span: &std::ops::Range<usize>| text.get(span.clone()).unwrap_or_default();
    let mut named = found.writes.len() + found.reads.len();
    for raw in found.commands.iter().map(read) {
        let loose = loose::loosen(raw);
        let words: Vec<&str> = loose.split(' ').collect();
        let runs_others = programs::guard(&words).is_some() || handover::find(&words).is_some();
        let forms = forms(raw, raw, runs_others);
        script.pieces.push(Piece { action: Action::Bash { command: raw }.to_string(), forms, guard: None, call: None });
        let outputs = programs::writes(&words);
        named += outputs.len();
        if named > FILES {
            from.lose();
        }
        script.pieces.extend(outputs.iter().filter_map(|path| write(path, &from, Some(why))));
        from.follow(&words);
    }
    if named > FILES {
        from.lose();
    }
    script.pieces.extend(found.writes.iter().filter_map(|span| write(&loose::loosen(read(span)), &from, Some(why))));
    found.reads.iter().for_each(|span| view(&loose::loosen(read(span)), &from, &mut script.hidden));
    // Pipes among them: each command in one is looked at.
    found.redirected.iter().for_each(|span| hide(read(span), loose::tails, &mut script.hidden));
    // A backslash at the beginning of a line joins it to the one before in the eyes of the parser.
    let lines = if text.contains("\n\\") { INNER } else { 0 };
    text.lines().take(lines).for_each(|line| hide(loose::cut(line, INNER_LENGTH), loose::tails, &mut script.hidden));
    // Substitutions that the parser takes for text, in `${x:-…}` for one.
    let inner = text.match_indices(['`', '(']).take(INNER).filter_map(|(at, mark)| text.get(at + mark.len()..));
    for piece in inner.filter_map(|rest| rest.split([';', '|', '&', '\n', ')', '`']).next()) {
        hide(loose::cut(piece, INNER_LENGTH), loose::names, &mut script.hidden);
    }
    script
}

/// A command that nobody understood, cut wherever another may begin.
fn unreadable(text: &str, why: &str, workspace: &WorkspacePaths) -> Script {
    let mut script = Script { guard: Some(why.to_owned()), ..Script::default() };
    let from = Directory::anywhere(workspace);
    let action = Action::Bash { command: text }.to_string();
    script.pieces.push(Piece { action, forms: Vec::new(), guard: None, call: None });
    let text = loose::cut(text, MAX);
    hide(text, loose::names, &mut script.hidden);
    for piece in text.split([';', '|', '&', '\n', '(', ')', '{', '}', '`', '<', '>']) {
        hide(piece, loose::tails, &mut script.hidden);
    }
    let target = |text: &str| {
        let target = loose::loosen(text.trim_start_matches(['<', '>', '|', '&', ' ']));
        target.split([' ', ';', '|', '&']).next().unwrap_or_default().to_owned()
    };
    for written in text.split('>').skip(1).map(target) {
        script.hidden.extend(files("create_file", &written, &from));
    }
    for read in text.split('<').skip(1).map(target) {
        view(&read, &from, &mut script.hidden);
    }
    script
}

/// Notes that a file is read: nothing has to allow it, and a rule for `view` may deny it or ask.
fn view(path: &str, from: &Directory<'_>, hidden: &mut Vec<String>) {
    hidden.extend(files("view", path, from));
}

/// Lists the actions of a file tool by all names of a path, as spelled first.
fn files(tool: &str, path: &str, from: &Directory<'_>) -> impl Iterator<Item = String> {
    from.names(path).into_iter().map(move |path| Action::File { tool, path: &path }.to_string())
}

/// Notes what a piece of a command may come to.
fn hide(piece: &str, called: fn(&str, &mut Vec<String>), hidden: &mut Vec<String>) {
    let mut forms = Vec::new();
    called(&loose::loosen(piece), &mut forms);
    hidden.extend(forms.into_iter().map(|form| format!("{BASH}{form}")));
}

/// How else `action` may be written, each as an action.
fn forms(action: &str, raw: &str, runs_others: bool) -> Vec<String> {
    let mut forms = Vec::new();
    let loose = loose::loosen(raw);
    if runs_others {
        loose::tails(&loose, &mut forms);
    } else {
        loose::names(&loose, &mut forms);
    }
    if !forms.iter().any(|form| form == raw) {
        forms.push(raw.to_owned());
    }
    forms.into_iter().filter(|form| form != action).map(|form| [BASH, &form].concat()).collect()
}

/// Why the name of a command is not what it seems.
fn obscure(name: &Word) -> Option<String> {
    let plain = !name.quoted && !name.value.is_empty() && name.value.chars().all(|c| c.is_ascii_graphic());
    (!plain).then(|| "the name of a command in it is not written plainly".to_owned())
}

/// A word as actions have it: in single quotes where it would not be one word without.
fn written(value: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || "_@%+=:,./^-~[]".contains(c);
    if !value.is_empty() && value.chars().all(safe) && !value.starts_with('~') {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Why a file may be another than its path says.
const MOVED: &str = "it writes a file after it changed the directory";

/// A file that is written; `None` where nothing is kept. `elsewhere`: why it may be another than its path says.
fn write(path: &str, from: &Directory<'_>, elsewhere: Option<&str>) -> Option<Piece> {
    if ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&path) {
        return None;
    }
    let (clean, guard) = paths::clean(path);
    let guard = guard.or(elsewhere);
    let action = Action::File { tool: "create_file", path: &clean }.to_string();
    let forms = files("create_file", path, from).filter(|form| *form != action).collect();
    Some(Piece { action, forms, guard: guard.map(str::to_owned), call: None })
}
