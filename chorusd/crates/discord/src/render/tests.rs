use unicode_segmentation::UnicodeSegmentation as _;

use super::code_block::{FenceState, Token};
use super::split::{Part, Parts, Tokens};
use super::*;

/// A pseudorandom number generator that returns the same numbers in every run.
struct TestRng(u64);

impl TestRng {
    fn up_to(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (most as u64 + 1)).unwrap()
    }
}

const TEXT_PIECES: [&str; 22] = [
    "word ",
    "a",
    "Zeile",
    "\n",
    "\n\n",
    "\r\n",
    "```",
    "```rust\n",
    "\n```\n",
    "`",
    "``",
    "\\`",
    "👩‍👩‍👧‍👦",
    "🇩🇪",
    "e\u{301}",
    "漢字",
    "    ",
    "\t",
    "x\u{200d}",
    "-# ",
    "\u{feff}",
    "```a b\n",
];

/// Returns whether `text` ends outside of a code block.
fn has_balanced_fences(text: &str) -> bool {
    let start = FenceState::default();
    !Tokens { rest: text, fence: start }.fold(start, FenceState::after).is_in_block()
}

fn check_parts(text: &str, most: usize) {
    let parts: Vec<Part<'_>> = Parts::new(text, most).collect();
    assert_eq!(parts.iter().map(|part| part.text).collect::<String>(), text);
    for (at, part) in parts.iter().enumerate() {
        assert!(part.opening.is_empty() || part.opening.starts_with("```") && part.opening.ends_with('\n'), "{part:?}");
        assert!(!part.text.is_empty() && ["", "```", "\n```"].contains(&part.closing), "{part:?}");
        let last = at + 1 == parts.len();
        let part = part.to_string();
        assert!(part.chars().count() <= most, "{} characters: {part:?}", part.chars().count());
        assert!(last || has_balanced_fences(&part), "open: {part:?}");
    }
}

#[test]
fn parts_are_short_enough_and_are_the_text_and_closed() {
    let mut dice = TestRng(0x9e37_79b9_7f4a_7c15);
    for _ in 0..600 {
        let mut text = String::new();
        for _ in 0..dice.up_to(300) {
            let piece = TEXT_PIECES[dice.up_to(TEXT_PIECES.len() - 1)];
            let times = if dice.up_to(20) == 0 { dice.up_to(120) } else { 1 };
            (0..times).for_each(|_| text.push_str(piece));
        }
        check_parts(&text, 60 + dice.up_to(200));
    }
}

#[test]
fn no_character_is_cut_in_two() {
    let family = "👩‍👩‍👧‍👦";
    for before in 1980..2000 {
        let text = "a".repeat(before) + &family.repeat(4) + &"e\u{301}".repeat(40);
        let parts = split(&text);
        assert_eq!(parts.concat(), text);
        let graphemes = |text: &str| text.graphemes(true).map(String::from).collect::<Vec<_>>();
        assert_eq!(parts.iter().flat_map(|part| graphemes(part)).collect::<Vec<_>>(), graphemes(&text));
    }
    // A grapheme that is longer than a message must be cut.
    let text = format!("a{}", "\u{301}".repeat(5000));
    assert_eq!(split(&text).concat(), text);
    check_parts(&text, 2000);
}

#[test]
fn two_thousand_fit_and_one_more_does_not() {
    for envelope in ["x", "漢", "🦀"] {
        assert_eq!(split(&envelope.repeat(2000)).len(), 1, "{envelope}");
        let parts = split(&envelope.repeat(2001));
        assert_eq!(parts.iter().map(|part| part.chars().count()).collect::<Vec<_>>(), [2000, 1], "{envelope}");
    }
    assert!(split("").is_empty());
}

#[test]
fn a_block_that_is_cut_is_closed_and_opened_with_its_language() {
    let code: String = (0..300).map(|n| format!("let a{n} = {n};\n")).collect();
    let parts = split(&format!("See:\n```rust\n{code}```\nDone."));
    assert!(parts.len() > 1);
    for (at, part) in parts.iter().enumerate() {
        assert!(at == 0 || part.starts_with("```rust\nlet "), "{part}");
        assert!(at + 1 == parts.len() || part.ends_with(";\n```"), "{part}");
    }
    assert!(parts.last().unwrap().ends_with("```\nDone."));
}

#[test]
fn no_block_is_left_with_nothing_in_it() {
    for before in 1960..2010 {
        for text in [
            format!("{}\n```sh\nls -l\npwd\n```\nend", "x".repeat(before)),
            format!("```sh\n{}\n```\nend", "y".repeat(before)),
        ] {
            check_parts(&text, 2000);
            for part in split(&text) {
                let inside: String = part.split("```").skip(1).step_by(2).collect();
                assert!(!part.contains("```") || inside.trim_start_matches("sh\n").trim() != "", "{before}: {part:?}");
            }
        }
    }
}

#[test]
fn paragraphs_lines_and_words_stay_whole_where_that_wastes_little() {
    let paragraph = "one two three\nfour five\n\n".repeat(100);
    assert!(split(&paragraph).iter().all(|part| part.ends_with("five\n\n") && part.starts_with("one")));
    let lines = "one two three\n".repeat(300);
    assert!(split(&lines).iter().all(|part| part.ends_with("three\n")));
    let words = "word ".repeat(900);
    assert!(split(&words).iter().all(|part| part.ends_with("word ") && part.starts_with("word")));
}

#[test]
fn what_is_long_is_a_file_with_its_beginning() {
    let RenderedText::Messages(parts) = render_text(&"x".repeat(8000)) else { panic!("four parts are no file") };
    assert_eq!(parts.len(), 4);
    let text = "line of text\n".repeat(60_000 / 13);
    let RenderedText::File { beginning, file } = render_text(&text) else { panic!("no file") };
    assert_eq!(file, text.as_bytes());
    assert!(beginning.starts_with("line of text\n") && beginning.ends_with("in answer.md."));
    assert!(beginning.chars().count() <= MAX_MESSAGE_CHARS);
    let blank = |text: &str| render_text(text) == RenderedText::Messages(vec!["(no text)".into()]);
    assert!(blank("") && blank(" \n\n ") && blank(&"\n".repeat(5000)));
}

#[test]
fn the_last_line_is_added_even_where_there_is_no_room() {
    let RenderedText::Messages(parts) = render_text(&"x".repeat(2000)).with_last_line("stopped") else {
        panic!("a file")
    };
    assert!(parts.len() == 2 && parts[1].contains("stopped"), "{parts:?}");
    let RenderedText::Messages(parts) = render_text("so far").with_last_line("stopped") else { panic!("a file") };
    assert_eq!(parts, ["so far\n\nstopped"]);
}

#[test]
fn the_end_of_a_text_that_grows_fits_and_is_closed() {
    let mut dice = TestRng(77);
    for _ in 0..300 {
        let text: String = (0..dice.up_to(900)).map(|_| TEXT_PIECES[dice.up_to(TEXT_PIECES.len() - 1)]).collect();
        let shown = tail(&text, 1800);
        assert!(shown.chars().count() <= 1800 && has_balanced_fences(&shown), "{shown:?}");
        let short = text.chars().count() <= 1796;
        assert!(!short || shown.starts_with(&text), "{text:?} is {shown:?}");
    }
    let code = format!("```rust\n{}", "let a = 1;\n".repeat(400));
    let shown = tail(&code, 1000);
    assert!(shown.starts_with("…\n```rust\nlet a") && shown.ends_with("1;\n```"), "{shown}");
    assert!(shown.chars().count() > 700);
}

#[test]
fn a_fence_is_what_discord_takes_for_one() {
    let tokens = |text| Tokens { rest: text, fence: FenceState::default() }.collect::<Vec<_>>();
    assert_eq!(tokens("```c++\nx```"), [Token::Opens("```c++\n"), Token::Other("x"), Token::Closes("```")]);
    assert_eq!(tokens("```let x\n")[..2], [Token::Opens("```"), Token::Other("l")]);
    assert_eq!(tokens("\\```")[..2], [Token::Other("\\`"), Token::Other("`")]);
}
