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

pub use reviewed::check as reviewed;

use plain::{Simple, Word};

use super::action::{Action, BASH};

/// Longer commands are not taken apart, in bytes.
const MAX: usize = 64 << 10;

/// How many substitutions are looked for beside those that the parser finds.
const INNER: usize = 256;
/// How much of each is looked at, in bytes.
const INNER_LENGTH: usize = 4 << 10;

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

/// Takes a command apart. A command without a `guard` is only what its pieces say.
#[must_use]
pub fn read(command: &str) -> Script {
    if command.len() > MAX {
        return unreadable(command, TOO_LONG);
    }
    let found = match tree::find(command) {
        Ok(found) => found,
        Err(why) => return unreadable(command, why),
    };
    let mut script = match plain::read(command) {
        Ok(simple) if simple.iter().filter_map(|simple| simple.span.clone()).eq(found.commands.iter().cloned()) => {
            plainly(command, simple)
        }
        Ok(simple) => {
            let mut script = searched(command, &found, DIFFER);
            let other = plainly(command, simple);
            script.hidden.extend(other.hidden);
            script
                .hidden
                .extend(other.pieces.into_iter().flat_map(|piece| [vec![piece.action], piece.forms]).flatten());
            script
        }
        Err(why) => searched(command, &found, why),
    };
    // Also what stands between the pieces; without quotes it is what was typed.
    if command.contains(['\'', '"', '\\', '$', '`', '{']) || script.guard.is_some() {
        script.hidden.push([BASH, &loose::loosen(command)].concat());
    }
    script
}

/// A command that two readers understood alike.
fn plainly(text: &str, commands: Vec<Simple>) -> Script {
    let mut script = Script::default();
    let mut moved = false;
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
        simple.reads().for_each(|path| view(path, &mut script.hidden));
        let writes = simple.writes().map(str::to_owned).chain(programs::writes(&words));
        script.pieces.extend(writes.filter_map(|path| write(&path, moved)));
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
fn searched(text: &str, found: &tree::Found, why: &str) -> Script {
    let mut script = Script { guard: Some(why.to_owned()), ..Script::default() };
    let read = |span: &std::ops::Range<usize>| text.get(span.clone()).unwrap_or_default();
    for raw in found.commands.iter().map(read) {
        let loose = loose::loosen(raw);
        let words: Vec<&str> = loose.split(' ').collect();
        let runs_others = programs::guard(&words).is_some() || handover::find(&words).is_some();
        let forms = forms(raw, raw, runs_others);
        script.pieces.push(Piece { action: Action::Bash { command: raw }.to_string(), forms, guard: None, call: None });
        script.pieces.extend(programs::writes(&words).iter().filter_map(|path| write(path, true)));
    }
    script.pieces.extend(found.writes.iter().filter_map(|span| write(&loose::loosen(read(span)), true)));
    found.reads.iter().for_each(|span| view(&loose::loosen(read(span)), &mut script.hidden));
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
fn unreadable(text: &str, why: &str) -> Script {
    let mut script = Script { guard: Some(why.to_owned()), ..Script::default() };
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
        script.hidden.push(Action::File { tool: "create_file", path: &paths::clean(&written).0 }.to_string());
    }
    for read in text.split('<').skip(1).map(target) {
        view(&read, &mut script.hidden);
    }
    script
}

/// Notes that a file is read: nothing has to allow it, and a rule for `view` may deny it or ask.
fn view(path: &str, hidden: &mut Vec<String>) {
    let (clean, _) = paths::clean(path);
    let also = (clean != path).then_some(path);
    let paths = std::iter::once(&*clean).chain(also);
    hidden.extend(paths.map(|path| Action::File { tool: "view", path }.to_string()));
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

/// A file that is written; `None` where nothing is kept. `moved`: the directory may not be the workspace.
fn write(path: &str, moved: bool) -> Option<Piece> {
    if ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&path) {
        return None;
    }
    let (clean, guard) = paths::clean(path);
    let guard = guard.or_else(|| moved.then_some("it writes a file after it changed the directory"));
    let action = |path: &str| Action::File { tool: "create_file", path }.to_string();
    let forms = if clean == path { Vec::new() } else { vec![action(path)] };
    Some(Piece { action: action(&clean), forms, guard: guard.map(str::to_owned), call: None })
}
