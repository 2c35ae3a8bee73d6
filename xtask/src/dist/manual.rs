//! The manual page of chorusd, from its help.

use std::fmt::Write as _;

/// Returns the page in roff for what `chorusd --help` prints.
pub(super) fn page(help: &str, version: &str) -> String {
    let mut page = format!(".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH chorusd 1 \"\" \"chorusd {version}\" Chorus\n");
    let (about, rest) = help.split_once("\n\n").unwrap_or((help, ""));
    let (description, options) = rest.split_once("\nOptions:\n").unwrap_or((rest, ""));
    let description = description.split("\nUsage:").next().unwrap_or_default().trim();
    let _ = write!(page, ".SH NAME\nchorusd \\- {}\n", escape(&one_line(about)));
    page.push_str(".SH SYNOPSIS\n\\fBchorusd\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n");
    let _ = writeln!(page, "{}", escape(&one_line(description)));
    page.push_str(".SH OPTIONS\n");
    for block in options.split("\n\n") {
        let mut lines = block.lines().map(str::trim).filter(|line| !line.is_empty());
        let Some(option) = lines.next() else { continue };
        let (option, inline) = option.split_once("  ").unwrap_or((option, ""));
        let text = std::iter::once(inline.trim()).chain(lines).collect::<Vec<_>>().join(" ");
        let _ = write!(page, ".TP\n\\fB{}\\fR\n{}\n", escape(option), escape(text.trim()));
    }
    page.push_str(".SH SEE ALSO\n\\fBchorusctl\\fR(1)\n");
    page
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes what roff would read as a request or as a hyphen that may be broken.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\*(Aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_text() {
        let help = "A daemon\n\nRuns here.\nStops there.\n\nUsage: chorusd [OPTIONS]\n\nOptions:\n      --socket <PATH>\n          Listen on\n          this\n\n  -V, --version\n          Print version\n";
        let page = page(help, "1.0.0");
        assert!(page.contains(".SH NAME\nchorusd \\- A daemon\n"), "{page}");
        assert!(page.contains(".SH DESCRIPTION\nRuns here. Stops there.\n"), "{page}");
        assert!(page.contains(".TP\n\\fB\\-\\-socket <PATH>\\fR\nListen on this\n"), "{page}");
        assert!(
            page.ends_with("\\fB\\-V, \\-\\-version\\fR\nPrint version\n.SH SEE ALSO\n\\fBchorusctl\\fR(1)\n"),
            "{page}"
        );
    }
}
