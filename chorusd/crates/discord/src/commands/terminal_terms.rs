//! Terms of the terminal, of the machine and of the protocol in texts of the operations, and what people in a channel
//! read instead. Pure.

/// Terms that nobody in a channel needs to know, with their replacements. A longer term comes before a shorter one that
/// it contains.
const TERMS: [(&str, &str); 21] = [
    ("in the daemon's environment", "on the computer that runs Chorus"),
    ("while the daemon is running", "from Discord"),
    ("the daemon", "Chorus"),
    ("its agent.json", "its settings file"),
    ("the kept agent.json", "the kept settings file"),
    ("the previous agent.json", "the previous settings file"),
    ("agent.json of", "the settings file of"),
    ("agent.json", "the agent's settings file"),
    ("the live context", "the conversation"),
    ("the context of", "the conversation of"),
    ("left out in the window", "left out for the model"),
    ("for the window", "for the model"),
    ("in the catalog", "in Chorus's index"),
    ("a bug in chorusd", "a bug in Chorus"),
    (" of the working set because of its size limit", " because of the size limit"),
    (" (half of `compact_at_tokens`)", ""),
    ("free some space and try again", "ask the owner to free some space, then try again"),
    (" (with a new idempotency key if it had one)", ""),
    (" with the same idempotency key", ""),
    (" with this idempotency key", ""),
    ("send or append a message first", "send a message first"),
];

/// Marks of a clause that tells the owner what to do on the computer that runs Chorus.
const OWNER_MARKS: [&str; 21] = [
    "config.toml",
    "agent.json",
    "docs/",
    "`base_url`",
    "`kind`",
    "_timeout`",
    "api_key",
    "environment",
    "LoadCredential",
    "CHORUS_",
    "max_frame",
    "for chorusd",
    "newer chorusd",
    "existing directory",
    "stop the program",
    "ListenStream",
    "backup",
    " --",
    "at a terminal",
    "at the terminal",
    "the Chorus home",
];

/// Replaces the terms in a text. What the text quotes stays as it is, since it is not Chorus's.
#[must_use]
pub(super) fn replace_terms(text: &str) -> String {
    let mut parts: Vec<String> = text.split('"').map(str::to_owned).collect();
    // An odd number of quotes quotes nothing.
    let is_quoting = parts.len() % 2 == 1;
    for part in parts.iter_mut().step_by(if is_quoting { 2 } else { 1 }) {
        *part = TERMS.iter().fold(std::mem::take(part), |part, (term, plain)| replace_term(&part, term, plain));
    }
    parts.join("\"")
}

/// Replaces a term, but not within a longer word or path.
fn replace_term(text: &str, term: &str, plain: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_');
    let (mut said, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(term) {
        let end = at + term.len();
        let inside = term.starts_with(char::is_alphanumeric) && rest[..at].ends_with(is_part)
            || term.ends_with(char::is_alphanumeric) && rest[end..].starts_with(is_part);
        said.push_str(&rest[..at]);
        said.push_str(if inside { term } else { plain });
        rest = &rest[end..];
    }
    said + rest
}

/// Returns whether a clause tells the owner what to do on the computer that runs Chorus.
#[must_use]
pub(super) fn is_for_owner(clause: &str) -> bool {
    OWNER_MARKS.iter().any(|mark| clause.contains(mark))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::super::hint_rewrite::rewrite_hint;
    use super::*;

    #[test]
    fn terms_are_replaced_outside_of_quotes_and_paths() {
        for (there, due) in [
            (
                "no API key for x: X_KEY is not set in the daemon's environment",
                "no API key for x: X_KEY is not set on the computer that runs Chorus",
            ),
            ("the daemon was stopped during the turn", "Chorus was stopped during the turn"),
            (
                "maps has no valid permissions: its agent.json is broken",
                "maps has no valid permissions: its settings file is broken",
            ),
            ("no session \"the daemon\" of the daemon", "no session \"the daemon\" of Chorus"),
            ("cannot read /a/agent.json of \" the daemons", "cannot read /a/agent.json of \" the daemons"),
            ("send it again with the same idempotency key", "send it again"),
            ("", ""),
        ] {
            assert_eq!(replace_terms(there), due);
        }
    }

    /// Returns the literals of the hints in a source file.
    fn hint_literals(source: &str) -> Vec<String> {
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let hints = source.split(".hint(").skip(1);
        hints
            .filter_map(|after| {
                let begin = after.find('"').filter(|at| *at < 60)? + 1;
                let end = after[begin..].replace("\\\\", "__").replace("\\\"", "__").find('"')? + begin;
                let lines: Vec<&str> = after[begin..end].split("\\\n").map(str::trim_start).collect();
                Some(lines.concat().replace("\\\"", "\""))
            })
            .collect()
    }

    fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("a folder of sources").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                sources(&entry, found);
            } else if entry.extension().is_some_and(|ext| ext == "rs") {
                found.push(entry);
            }
        }
    }

    #[test]
    fn no_hint_of_the_core_names_what_a_channel_does_not_have() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates");
        let mut files = Vec::new();
        for name in ["agent-core", "base", "config", "engine", "llm", "permissions", "session", "store"] {
            sources(&crates.join(name).join("src"), &mut files);
        }
        let hints = files.iter().flat_map(|file| hint_literals(&fs::read_to_string(file).expect("a source")));
        let (mut wrong, mut count) = (Vec::new(), 0);
        for hint in hints {
            let shown = rewrite_hint(&hint);
            let foreign = ["chorusctl", "daemon", "terminal", "socket", "config.toml", "agent.json", "docs/", "--"];
            let named: Vec<&str> = foreign.into_iter().filter(|word| shown.contains(word)).collect();
            if !named.is_empty() {
                wrong.push(format!("{named:?} in {shown:?}"));
            }
            count += 1;
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(count > 100, "only {count} hints found");
    }
}
