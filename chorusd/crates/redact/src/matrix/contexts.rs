//! The contexts in which a secret may occur.

use super::kind_samples::Sample;

/// A context and its name. The function returns `None` if a sample cannot occur there.
pub(super) type Context = (&'static str, Box<dyn Fn(&Sample) -> Option<String>>);

/// Text before and after the secret. A key block has lines of its own.
const AROUND: &[(&str, &str, &str)] = &[
    ("alone", "", ""),
    ("in a sentence", "the key is ", " and so on"),
    ("at the end of a sentence", "it is ", "."),
    ("with a comma", "it is ", ", and so on"),
    ("in brackets", "it (", ") is"),
    ("in square brackets", "it [", "] is"),
    ("in angle brackets", "it <", "> is"),
    ("in typographic quotes", "it „", "“ is"),
    ("between other letters", "é", "é"),
    ("at the beginning of a line", "one\n", "\ntwo"),
    ("before CRLF", "one\r\n", "\r\ntwo"),
    ("behind a tab", "key\t", "\tvalue"),
    ("in a comment", "// ", " // so"),
    ("in SQL", "VALUES ('", "');"),
    ("in HTML", "<td>", "</td>"),
    ("in an entity", "&quot;", "&quot;"),
    ("in YAML", "key: ", "\nnext: 1"),
    ("in JSON", "{\"key\": \"", "\"}"),
    ("in JSON in JSON", "{\\\"key\\\": \\\"", "\\\"}"),
    ("in JSON, in a line", "{\"key\": \"a\\n", "\\nb\"}"),
    ("in JSON, behind a tab", "{\"key\": \"a\\t", "\\tb\"}"),
    ("in JSON, behind an escape", "{\"key\": \"\\u003d", "\\u003c\"}"),
    ("in Markdown, code", "it is `", "` so"),
    ("in Markdown, a block", "```\n", "\n```"),
    ("in Markdown, bold", "it is **", "** so"),
    ("in Markdown, italics", "it is *", "* so"),
    ("in Markdown, italics by underscores", "it is _", "_ so"),
    ("in Markdown, bold by underscores", "it is __", "__ so"),
    ("in Markdown, struck out", "it is ~~", "~~ so"),
    ("in Markdown, a list", "- ", "\n- next"),
    ("in Markdown, a quotation", "> ", "\n> next"),
    ("in Markdown, a table", "| ", " | x |"),
    ("in a diff, added", "@@ -1 +1 @@\n+", "\n context"),
    ("in a diff, removed", "@@ -1 +1 @@\n-", "\n context"),
    ("in a diff, kept", "@@ -1 +1 @@\n ", "\n+more"),
    ("in the shell, assigned", "export TOKEN=", "\n"),
    ("in the shell, quoted", "TOKEN='", "' run"),
    ("in the shell, a variable's value", "${TOKEN:-", "}"),
    ("behind a file and a line", "src/a.rs:12:", "\n"),
    ("coloured", "\u{1b}[31m", "\u{1b}[0m"),
    ("coloured by 24 bits", "\u{1b}[38;2;255;100;0m", "\u{1b}[m"),
    ("as grep colours it", "key=\u{1b}[01;31m\u{1b}[K", "\u{1b}[m\u{1b}[K;"),
    ("behind a charset", "\u{1b}(B", "\u{1b}(B"),
    ("behind ESC[K in a word", "a\u{1b}[K", "\u{1b}[Kb"),
    ("in a hyperlink", "\u{1b}]8;;http://a.example\u{1b}\\", "\u{1b}]8;;\u{1b}\\"),
    ("in a hyperlink that a bell ends", "\u{1b}]8;;http://a.example\u{7}", "\u{1b}]8;;\u{7}"),
    ("in the address of a hyperlink", "\u{1b}]8;;", "\u{1b}\\text\u{1b}]8;;\u{1b}\\"),
    ("behind a carriage return", "50%\r", "\r"),
    ("behind \\x1b[31m", "\\x1b[31m", "\\x1b[0m"),
    ("behind \\u001b[0m", "\\u001b[0m", "\\u001b[0m"),
    ("behind \\\\u001b[0m", "\\\\u001b[0m", "\\\\u001b[0m"),
    ("behind \\033[1m", "\\033[1m", "\\033[0m"),
    ("behind \\e[K", "\\e[K", "\\e[K"),
    ("behind ^[[K", "^[[K", "^[[K"),
    ("in quoted-printable", "=3D", "=20"),
    ("behind control characters", "a\u{1}", "\u{1}b"),
];

/// The same for secrets with a pattern of their own, after other text.
const SHAPED: &[(&str, &str, &str)] = &[
    ("in a name", "NAME_", " x"),
    ("in a name, inside", "NAME_", "_"),
    ("as an option without a blank", "mysql -p", " db"),
    ("as a long option", "run --token=", " x"),
    ("as an option with a name", "curl -uuser:", " http://a.example"),
    ("as an option with a colon behind it", "curl -u ", ": http://a.example"),
    ("in a query", "https://a.example/?token=", "&x=1"),
    ("in a path", "https://a.example/", "/x"),
    ("in the escape of a URL", "a%3D", "%26b"),
    ("in the escape of a URL, twice", "a%253D", "%2526b"),
    ("in a URL as a password", "https://x:", "@github.com/a/b.git"),
    ("in a header", "Authorization: Bearer ", "\r\n"),
    ("in a header of another scheme", "Authorization: token ", "\r\n"),
    ("in a header of its own", "X-Api-Key: ", "\r\n"),
    ("in .npmrc", "//registry.example.com/:_authToken=", "\n"),
    ("in .netrc", "machine a.example login me password ", "\n"),
];

/// Text that breaks a secret in its middle.
const BROKEN: &[(&str, &str, &str, &str)] = &[
    ("coloured in its middle", "the ", "\u{1b}[0m", " x"),
    ("with ESC[K in its middle", "the ", "\u{1b}[m\u{1b}[K", " x"),
    ("with ESC(B in its middle", "the ", "\u{1b}(B", " x"),
    ("with the end of a hyperlink in its middle", "the ", "\u{1b}]8;;\u{1b}\\", " x"),
    ("with \\x1b[0m in its middle", "the ", "\\x1b[0m", " x"),
    ("with \\u001b[0m in its middle", "the ", "\\u001b[0m", " x"),
    ("with ^[[0m in its middle", "the ", "^[[0m", " x"),
    ("in two lines", "the ", "\n", "\nx"),
    ("in two lines, CRLF", "the ", "\r\n", "\r\nx"),
    ("in two lines, indented", "    ", "\n    ", "\n    x"),
    ("in two lines, padded", "the ", "   \n", "   \nx"),
    ("in two lines by a backslash", "TOKEN=", "\\\n", "\nx"),
    ("in two lines by a backslash, indented", "  TOKEN=", " \\\n    ", "\nx"),
    ("in two lines, written out", "\"the ", "\\n", "\\nx\""),
    ("in two strings", "key = (\"", "\"\n       \"", "\")\n"),
    ("in two strings with an operator", "key = \"", "\" +\n    \"", "\";\n"),
    ("in two strings with an operator before", "key = '", "'\n    + '", "';\n"),
    ("in two lines of quoted-printable", "the ", "=\n", "\nx"),
    ("in two lines of quoted-printable, CRLF", "the ", "=\r\n", "\r\nx"),
    ("in two lines of a diff, removed", "@@\n-a ", "\n-", "\n+x"),
    ("in two lines of a diff, added", "@@\n+a ", "\n+", "\n x"),
    ("in two lines of a quotation", "> a ", "\n> ", "\n> x"),
    ("in two lines of a comment", "# a ", "\n# ", "\n# x"),
    ("in two numbered lines", "  1\ta ", "\n  2\t", "\n  3\tx"),
    ("in two lines with numbers and a colon", "9:a ", "\n10:", "\n11:x"),
];

fn between(before: &'static str, after: &'static str) -> impl Fn(&Sample) -> String {
    move |sample| {
        // A mark before the lines of a block precedes each of them.
        let line = before.rsplit('\n').next().unwrap();
        let marked = sample.is_block() && matches!(line, "+" | "-" | " " | "> " | "// ");
        let text = if marked { sample.text().replace('\n', &format!("\n{line}")) } else { sample.text() };
        format!("{before}{text}{after}")
    }
}

/// Returns all contexts.
pub(super) fn contexts() -> Vec<Context> {
    let mut all: Vec<Context> = Vec::new();
    for (name, before, after) in AROUND {
        let place = between(before, after);
        all.push((name, Box::new(move |sample| Some(place(sample)))));
    }
    for (name, before, after) in SHAPED {
        let place = between(before, after);
        let fits = |sample: &Sample| sample.is_alone() && !sample.is_block();
        all.push((name, Box::new(move |sample| fits(sample).then(|| place(sample)))));
    }
    for (name, before, middle, after) in BROKEN {
        for (number, part) in [3, 5, 7, 9].into_iter().enumerate() {
            let place = move |sample: &Sample| {
                if sample.is_block() || sample.hidden.contains(' ') {
                    return None;
                }
                // Breaks it at each tenth; the first one is inside the prefix.
                let at = sample.hidden.len() * part / 10;
                let (first, second) = sample.hidden.split_at(at);
                Some(format!("{before}{}{first}{middle}{second}{}{after}", sample.before, sample.after))
            };
            let name = if number == 0 { *name } else { Box::leak(format!("{name}, at {part}0 %").into_boxed_str()) };
            all.push((name, Box::new(place)));
        }
    }
    all.push((
        "in upper and lower lines of a table",
        Box::new(|sample| Some(format!("| a |\n| {} |\n", sample.text()))),
    ));
    all
}
