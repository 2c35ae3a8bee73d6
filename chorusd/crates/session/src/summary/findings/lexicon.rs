//! Word lists that show decisions and open tasks. They are English, Chinese and Japanese, with the most common words of
//! a few related languages. All are searched in one pass.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Each entry is one word or several consecutive ones.
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
    "picked",
    "settled for",
    "approved",
    "ruled out",
    "went with",
    "going forward",
    "switching to",
    "are switching from",
    "we won't",
    "we will not",
    "we're not going to",
    "we are not going to",
    "we are keeping",
    "we're keeping",
    "we'll do",
    "we'll stick",
    "the plan is to",
    "final call",
    "concluded that",
    "consensus",
    "we prefer",
    "i prefer",
    "as a rule",
    "i'd rather",
    "we'd rather",
    "i would rather",
    "we would rather",
    "standardize on",
    "standardise on",
    "standardized on",
    "we committed to",
    "convention is",
    "stays at",
    "let us use",
    "let's drop",
    "let's keep",
    "let's make",
    "let's stick",
    "please always",
    "always use",
    "never use",
    "no longer use",
    "entschieden",
    "beschlossen",
    "décidé",
    "decidido",
];

const TASKS: &[&str] = &[
    "todo",
    "still to do",
    "things to do",
    "more to do",
    "something to do",
    "remains to do",
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
    "unresolved",
    "unfinished",
    "outstanding",
    "tbd",
    "action item",
    "to be done",
    "what remains",
    "remain to be",
    "next thing",
    "make sure to",
    "must not forget",
    "must be fixed",
    // As in "re-run".
    "must be re",
    "schedule a",
    "have not yet",
    "has not yet",
    "can be done later",
    "has to be",
    "have to be",
    "still lacks",
    "still no",
    "still missing",
    "still broken",
    "still waits",
    "still waiting for",
    "we have to",
    "we need to",
    "we need a",
    "we should add",
    "someone has to",
    "somebody has to",
    "someone should",
    "somebody should",
    "someone needs to",
    "should be removed",
    "should be added",
    "should be replaced",
    "needs a",
    "needs an",
    "needs investigation",
    "isn't finished",
    "is not finished",
    "isn't done",
    "is not done",
    "haven't decided",
    "have not decided",
    "need to add",
    "need to fix",
    "need to check",
];

/// The same for scripts without spaces between words; these match anywhere.
const DECISIONS_UNSPACED: &[&str] = &[
    // Chinese, in simplified and traditional characters.
    "决定",
    "決定",
    "选定",
    "選定",
    "选择了",
    "選擇了",
    "采用",
    "採用",
    "改用",
    "沿用",
    "一致同意",
    "达成一致",
    "達成一致",
    "今后使用",
    "今後使用",
    // Japanese; some of the above are Japanese as well.
    "決めた",
    "決めました",
    "決まった",
    "決まりました",
    "にしましょう",
    "ことにした",
    "ことにしました",
    "ことにする",
    "ことにします",
    "合意し",
    "使うことに",
];

const TASKS_UNSPACED: &[&str] = &[
    // Chinese.
    "待办",
    "待辦",
    "待处理",
    "待處理",
    "还需要",
    "還需要",
    "仍需",
    "仍然需要",
    "尚未完成",
    "还没有完成",
    "還沒有完成",
    "下一步",
    "别忘了",
    "別忘了",
    "不要忘记",
    "不要忘記",
    "记得要",
    "記得要",
    "未解决",
    "未解決",
    // Japanese.
    "やること",
    "残タスク",
    "残っている",
    "残っています",
    "まだ必要",
    "する必要がある",
    "する必要があります",
    "次のステップ",
    "忘れずに",
    "忘れないで",
    "未完了",
    "未対応",
    "要対応",
    "今後の課題",
    "後で対応",
];

/// Endings of questions in Chinese and Japanese that need no question mark.
const QUESTION_ENDINGS: &[char] = &['か', '吗', '嗎'];

/// The cues found in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CueMatches {
    pub decision: bool,
    pub task: bool,
}

/// An automaton over all cues, those of decisions first.
struct CueMatcher {
    /// Always `Some`: the number of patterns is small.
    search: Option<AhoCorasick>,
    /// Finds `to do` if it is a noun. `Something to do that` leaves nothing to do. As `search`, always `Some`.
    to_do: Option<AhoCorasick>,
    /// Number of patterns that are of decisions.
    decisions: usize,
}

static CUES: LazyLock<CueMatcher> = LazyLock::new(|| {
    let spaced = |cues: &[&str]| cues.iter().map(|cue| format!(" {cue} ")).collect::<Vec<_>>();
    let unspaced = |cues: &[&str]| cues.iter().map(|cue| (*cue).to_owned()).collect::<Vec<_>>();
    let mut patterns = [spaced(DECISIONS), unspaced(DECISIONS_UNSPACED)].concat();
    let decisions = patterns.len();
    patterns.extend([spaced(TASKS), unspaced(TASKS_UNSPACED)].concat());
    let to_do = AhoCorasick::builder().ascii_case_insensitive(true).build(["to-do", "to do:", "to do list"]).ok();
    CueMatcher { search: AhoCorasick::new(&patterns).ok(), to_do, decisions }
});

/// Finds the cues in a sentence or in a whole message.
#[must_use]
pub(super) fn find_cues(text: &str) -> CueMatches {
    let mut tells = CueMatches::default();
    let CueMatcher { search: Some(search), to_do: Some(to_do), decisions } = &*CUES else { return tells };
    tells.task = to_do.is_match(text);
    for cue in search.find_overlapping_iter(&normalize_words(text)) {
        let of_decision = cue.pattern().as_usize() < *decisions;
        tells.decision |= of_decision;
        tells.task |= !of_decision;
        if tells.decision && tells.task {
            break;
        }
    }
    tells
}

/// Converts a text to lower case with one space before, between and after its words. Punctuation between letters
/// belongs to a word if Unicode says so: `todo.md` and `don't` are one word each.
pub(super) fn normalize_words(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 2);
    plain.push(' ');
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let c = if c == '’' { '\'' } else { c };
        let inside = matches!(c, '\'' | '.' | '_' | ':')
            && before.is_alphanumeric()
            && rest.peek().is_some_and(|next| next.is_alphanumeric() || *next == '_');
        if c.is_ascii() && (c.is_ascii_alphanumeric() || inside) {
            plain.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() {
            plain.extend(c.to_lowercase());
        } else if !plain.ends_with(' ') {
            plain.push(' ');
        }
        before = if inside { 'x' } else { c };
    }
    if !plain.ends_with(' ') {
        plain.push(' ');
    }
    plain
}

/// Returns whether a sentence is a question, which neither decides anything nor leaves anything to do.
pub(super) fn is_question(sentence: &str) -> bool {
    sentence.ends_with(['?', '？']) || sentence.trim_end_matches(['。', '.', ' ']).ends_with(QUESTION_ENDINGS)
}

/// Returns whether a sentence says that something is not done yet, or will be done later.
pub(super) fn is_put_off(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase().replace('’', "'");
    let sentence = sentence.trim_end_matches(['.', '!', ' ']);
    let has = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
    match sentence.rsplit(' ').next() {
        Some("yet") => has(&["n't ", " not "]),
        Some("later" | "tomorrow") => has(&["'ll ", " will ", " need ", " have to ", " must ", "can be "]),
        _ => ["later we ", "later i ", "open: "].iter().any(|start| sentence.starts_with(start)),
    }
}

/// Returns the task of a line such as `- [ ] write the test`.
pub(super) fn open_checkbox_task(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let item = line.strip_prefix(['-', '*', '+']).unwrap_or(line).trim_start();
    item.strip_prefix("[ ]").map(str::trim).filter(|task| !task.is_empty())
}

/// Returns whether a sentence began as such a line, checked or unchecked.
pub(super) fn is_checkbox(text: &str) -> bool {
    ["[ ]", "[x]", "[X]"].iter().any(|mark| text.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (bool, bool) {
        let CueMatches { decision, task } = find_cues(text);
        (decision, task)
    }

    #[test]
    fn cues_are_whole_words_in_a_row_whatever_stands_between_and_around_them() {
        for text in ["We decided.", "DECIDED", "let’s use it", "'go  with' that", "**Going**\nwith it", "il a DÉCIDÉ"]
        {
            assert_eq!(told(text), (true, false), "{text}");
        }
        for text in ["TODO: it", "a to-do", "follow-up", "don’t forget it", "(pending)"] {
            assert_eq!(told(text), (false, true), "{text}");
        }
        for text in ["", "undecided", "todo.md", "to_do", "decisions", "go on with", "spending", "go. Without"] {
            assert_eq!(told(text), (false, false), "{text}");
        }
        assert_eq!(told("we agreed to go with what still needs to be done"), (true, true));
    }

    #[test]
    fn what_is_put_off_is_told_by_the_end_of_the_sentence() {
        for text in ["It hasn’t been run yet.", "I'll fix it later", "Later we delete it.", "Open: who owns it."] {
            assert!(is_put_off(text), "{text}");
        }
        for text in ["", "yet", "Not yet another one.", "It failed two minutes later.", "Tomorrow is Monday."] {
            assert!(!is_put_off(text), "{text}");
        }
    }

    #[test]
    fn chinese_and_japanese_cues_stand_anywhere() {
        for text in
            ["我们决定保留旧的表。", "我們決定採用這個方案", "PostgreSQLを使うことにしました。", "来週に決まりました"]
        {
            assert_eq!(told(text), (true, false), "{text}");
        }
        for text in ["还需要写测试。", "下一步：部署", "テストが残っています。", "索引を忘れずに"]
        {
            assert_eq!(told(text), (false, true), "{text}");
        }
        assert_eq!(told("今天天气很好。東京は晴れです。"), (false, false));
        assert!(is_question("もう決定しましたか。") && is_question("决定了吗？") && !is_question("決定しました。"));
    }
}
