//! Recognizes sentences that contain a cue but decide nothing, or leave nothing to do. They were found in real conversations.

use chorus_proto::Role;

use super::lexicon::normalize_words;

/// Words that say that work is left.
const LEFT: &[&str] = &["left", "remains", "remaining", "pending", "outstanding", "open", "unresolved", "unfinished"];

/// Nouns for work, and the words between `no` and the noun.
const WORK: &[&str] =
    &["task", "tasks", "item", "items", "step", "steps", "question", "questions", "issue", "issues", "work"];
const OF_WORK: &[&str] = &[
    "open",
    "pending",
    "outstanding",
    "remaining",
    "unresolved",
    "unfinished",
    "further",
    "more",
    "next",
    "other",
    "action",
    "additional",
];

/// Words of a sentence that has an exception, so that something is left after all.
const EXCEPTIONS: &[&str] = &[
    " but ",
    " except ",
    " although ",
    " however ",
    " still ",
    " aber ",
    " außer ",
    " mais ",
    " sauf ",
    " pero ",
    " salvo ",
];

/// The same in other languages: any of the groups is enough if all its parts occur.
const NOTHING_LEFT: &[&[&str]] = &[
    &[" nichts ", " zu tun "],
    &[" nichts ", " offen "],
    &[" keine offenen "],
    &[" kein todo "],
    &[" keine todos "],
    &[" rien ", " à faire "],
    &[" aucune tâche "],
    &[" aucun todo "],
    &[" nada ", " que hacer "],
    &[" nada ", " pendiente "],
    &[" ninguna tarea "],
    &[" sin tareas "],
    &["没有待办"],
    &["沒有待辦"],
    &["没有其他待办"],
    &["沒有其他待辦"],
    &["没有未"],
    &["沒有未"],
    &["やることはありません"],
    &["やることはない"],
    &["タスクはありません"],
    &["タスクはない"],
    &["課題はありません"],
];

/// Parts of sentences that describe, ask or suppose instead of leaving something to do.
const NO_TASKS: &[&str] = &[
    " that we need to ",
    " that we have to ",
    " that we have not yet ",
    " that i need to ",
    " which we need to ",
    " let me know ",
    " may need to ",
    " might need to ",
    " there has to be ",
    " just yet ",
    " couldn't have ",
    " could not have ",
    " this follow up ",
    " this time ",
    " no longer pending ",
    " no longer unresolved ",
    " no longer outstanding ",
];

/// Beginnings of what a model says before it does it.
const NARRATION: &[&str] = &[" let's ", " let us ", " let me "];
const PURPOSES: &[&str] = &[" to ", " in order to "];

/// Beginnings of rules that always hold.
const RULES: &[&str] = &[" when ", " whenever ", " if ", " always "];

/// Phrases with which a model announces a tool call, if a purpose follows.
const TOOL_USES: &[&str] = &[" i'll use ", " i will use ", " let's use ", " let us use ", " let's make "];

/// Words after or before the Spanish and Portuguese `todo`, which means `all`.
const AFTER_SPANISH_TODO: &[&str] = &[
    "el",
    "lo",
    "la",
    "los",
    "está",
    "esta",
    "es",
    "bien",
    "listo",
    "esto",
    "eso",
    "ha",
    "fue",
    "funciona",
    "correcto",
    "hecho",
    "terminado",
    "en",
    "perfecto",
    "o",
    "isso",
    "certo",
    "mundo",
    "ok",
];
const BEFORE_SPANISH_TODO: &[&str] = &["sobre", "del", "ante", "con", "es", "y", "está", "hay"];

/// Returns whether the sentence leaves nothing to do, in spite of a cue.
pub(super) fn is_no_task(sentence: &str, role: Role) -> bool {
    let words = normalize_words(sentence);
    let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let starts = |parts: &[&str]| parts.iter().any(|part| words.starts_with(part));
    let plans = || starts(PURPOSES) && has(&[" we need to ", " we have to ", " we should add "]);
    let narrates = role == Role::Assistant && (starts(NARRATION) || has(&[" todo list "]) || plans());
    let is_rule = starts(RULES) && has(&[" make sure to ", " you need to ", " if you need "]);
    sentence.ends_with(':')
        || has(NO_TASKS)
        || narrates
        || is_rule
        || is_nothing_left(&words)
        || is_spanish(sentence, &words)
}

/// Returns whether the sentence decides nothing, in spite of a cue.
pub(super) fn is_no_decision(sentence: &str, role: Role) -> bool {
    let words = normalize_words(sentence);
    let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let uses_tool = || {
        let after = TOOL_USES.iter().find_map(|cue| words.split_once(cue));
        role == Role::Assistant && after.is_some_and(|(_, rest)| rest.contains(" to "))
    };
    sentence.ends_with(':')
        || has(&[" no decision ", " nothing was decided ", " not decided ", " make a decision ", " making a decision "])
        || uses_tool()
}

/// Returns whether the sentence says that nothing is left to do: `Nothing else to do.`, `No open tasks.`, `All to-dos are
/// done.`
fn is_nothing_left(words: &str) -> bool {
    let has = |part: &str| words.contains(part);
    if EXCEPTIONS.iter().any(|part| has(part)) {
        return false;
    }
    if NOTHING_LEFT.iter().any(|parts| parts.iter().all(|part| has(part))) {
        return true;
    }
    let list: Vec<&str> = words.split_whitespace().collect();
    let after = |at: usize, count: usize| &list[at + 1..list.len().min(at + 1 + count)];
    let nothing = |at: usize| {
        let next = after(at, 5);
        next.iter().any(|word| LEFT.contains(word)) || next.windows(2).any(|pair| pair == ["to", "do"])
    };
    let no_work = |at: usize| match after(at, 3) {
        ["todo" | "todos", ..] | ["to", "do" | "dos", ..] | ["follow", "up" | "ups", ..] => true,
        [kind, noun, ..] if OF_WORK.contains(kind) && WORK.contains(noun) => true,
        [kind, more, noun] => OF_WORK.contains(kind) && OF_WORK.contains(more) && WORK.contains(noun),
        _ => false,
    };
    let negated = list.iter().enumerate().any(|(at, word)| match *word {
        "nothing" => nothing(at),
        "no" | "any" | "without" if *word != "any" || has("n't ") || has(" not ") => no_work(at),
        _ => false,
    });
    let is_done = || {
        let finished = ["done", "complete", "completed", "finished", "resolved", "closed"];
        let [.., before, last] = list.as_slice() else { return false };
        let all = ["everything", "all"].contains(list.first().unwrap_or(&""));
        all && finished.contains(last) && ["is", "are", "been", "now"].contains(before)
    };
    negated || is_done()
}

/// Returns whether `todo` in the sentence is the Spanish word.
fn is_spanish(sentence: &str, words: &str) -> bool {
    let list: Vec<&str> = words.split_whitespace().collect();
    let Some(at) = list.iter().position(|word| *word == "todo") else { return false };
    let before = at.checked_sub(1).and_then(|before| list.get(before));
    let near = list.get(at + 1).is_some_and(|word| AFTER_SPANISH_TODO.contains(word))
        || before.is_some_and(|word| BEFORE_SPANISH_TODO.contains(word));
    near && !sentence.contains("TODO") && !sentence.to_lowercase().contains("todo:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_leaves_nothing() {
        for text in [
            "Nothing else to do.",
            "There is nothing left to do here",
            "Nothing is pending.",
            "No open tasks.",
            "There are no further action items.",
            "We don't have any open questions.",
            "No TODOs remain.",
            "No to-dos.",
            "No next steps.",
            "All to-dos are done.",
            "Everything on the todo list is done.",
            "Es ist nichts mehr zu tun, kein TODO.",
            "Plus rien à faire.",
            "No queda nada pendiente.",
            "没有待办事项。",
            "やることはありません。",
            "Todo está listo, sobre todo el TODO.",
            "Sobre todo el código funciona.",
        ] {
            let sure = is_no_task(text, Role::Assistant);
            assert_eq!(sure, !text.contains("el TODO"), "{text}");
        }
        for text in [
            "Nothing has been done yet.",
            "Nothing else to do, but the docs still need a page.",
            "No tests need to be added, next steps are the docs.",
            "All invoices have to be checked.",
            "TODO: todo el texto",
            "There is no index, so we need to add one.",
        ] {
            assert!(!is_no_task(text, Role::Assistant), "{text}");
        }
    }

    /// Sentences of the transcripts in tau-bench and SWE-agent.
    #[test]
    fn sentences_of_real_conversations_leave_nothing_to_do() {
        for (role, text) in [
            (Role::User, "When editing a file, make sure to insert appropriate indentation before each line!"),
            (Role::User, "Always make sure to look at the currently open file and the current working directory."),
            (Role::Assistant, "Let's calculate the inverse using the observation that we need to take the modulus."),
            (Role::Assistant, "To resolve this, we need to locate and edit the file to add the missing colon."),
            (Role::Assistant, "The seed is calculated using a hash on the flag that we need to find."),
            (Role::Assistant, "We see a third CGI script that we have not yet explored: /cgi-bin/file.pl."),
            (Role::Assistant, "I will fix my syntax in this follow up edit command."),
            (Role::Assistant, "Let me create a todo list to track our progress."),
            (Role::Assistant, "Baggage: Let me know if you need to add any checked bags."),
            (Role::User, "I really appreciate your help, but I'm not ready to give up just yet."),
            (Role::Assistant, "You may need to check your user profile or account for this information."),
            (Role::User, "There has to be some flexibility."),
            (Role::Assistant, "If you need to add more bags, each additional checked bag will cost $50."),
        ] {
            assert!(is_no_task(text, role), "{text}");
        }
        for text in [
            "Before attempting any injections, I'll use the curl command to submit some test data.",
            "Let's use find_file to see where it is.",
            "Let's make the necessary edit to the code.",
            "Here's what we'll do:",
            "No decision was made.",
        ] {
            assert!(is_no_decision(text, Role::Assistant), "{text}");
        }
        for text in ["I'll use my credit card to pay.", "Let's use the gift card to cover the difference, please."] {
            assert!(!is_no_decision(text, Role::User), "{text}");
        }
    }
}
