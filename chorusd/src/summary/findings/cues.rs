//! Words that tell a decision or something left to do. They are English, with the commonest of a few neighbours.

/// Each is one word or several in a row.
const DECISIONS: &[&str] = &[
    "decided",
    "decision",
    "agreed",
    "chose",
    "chosen",
    "settled on",
    "opted",
    "we'll use",
    "we will use",
    "i'll use",
    "i will use",
    "let's use",
    "let's go with",
    "go with",
    "going with",
    "stick with",
    "switched to",
    "from now on",
    "we keep",
    "we'll keep",
    "we will keep",
    "rejected",
    "entschieden",
    "beschlossen",
    "décidé",
    "decidido",
];

const TASKS: &[&str] = &[
    "todo",
    "to do",
    "fixme",
    "still need",
    "still needs",
    "still have to",
    "still has to",
    "must still",
    "needs to be",
    "need to be",
    "remains to",
    "remains open",
    "left to do",
    "left open",
    "next step",
    "next steps",
    "don't forget",
    "do not forget",
    "remember to",
    "follow up",
    "open question",
    "pending",
];

/// Whether a text in lower case may hold either, by its letters alone.
pub fn may_tell(lower: &str) -> bool {
    let straight = lower.contains('’').then(|| lower.replace('’', "'"));
    let text = straight.as_deref().unwrap_or(lower);
    lower.contains("[ ]") || DECISIONS.iter().chain(TASKS).any(|cue| text.contains(first(cue)))
}

fn first(cue: &str) -> &str {
    cue.split(' ').next().unwrap_or(cue)
}

pub fn is_decision(words: &[String]) -> bool {
    words.len() > 2 && within(words, DECISIONS)
}

pub fn is_task(words: &[String]) -> bool {
    words.len() > 2 && within(words, TASKS)
}

/// The task of a line such as `- [ ] write the test`.
pub fn open_box(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let item = line.strip_prefix(['-', '*', '+']).unwrap_or(line).trim_start();
    item.strip_prefix("[ ]").map(str::trim).filter(|task| !task.is_empty())
}

/// Whether a sentence was such a line, open or ticked off.
pub fn is_box(text: &str) -> bool {
    ["[ ]", "[x]", "[X]"].iter().any(|mark| text.starts_with(mark))
}

fn within(words: &[String], cues: &[&str]) -> bool {
    let at = |cue: &str, start: usize| {
        let mut from = words[start..].iter();
        cue.split(' ').all(|part| from.next().is_some_and(|word| word == part))
    };
    (0..words.len()).any(|start| cues.iter().any(|cue| at(cue, start)))
}
