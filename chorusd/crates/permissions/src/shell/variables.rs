//! Variables that a command sets.

use chorus_base::locale_check;

/// An assignment, in front of a command or by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub name: String,
    /// The new value without quotes; `None` if it is appended to the old one.
    pub value: Option<String>,
}

/// Variables that only change how much programs print and how it looks, whatever their value.
const HARMLESS_VARIABLES: &[&str] =
    &["CI", "CLICOLOR", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "RUST_BACKTRACE", "RUST_LOG"];

/// Returns the reason why these assignments may change the behaviour of commands, as a text that continues "it is asked
/// about because".
#[must_use]
pub(super) fn ask_reason(assignments: &[Assignment]) -> Option<String> {
    let name = &assignments.iter().find(|assignment| !is_harmless(assignment))?.name;
    Some(match is_locale_variable(name) {
        true => format!("it sets `{name}` to a locale other than C or UTF-8, which changes how bash parses the rest"),
        false => format!("it sets `{name}`, which may affect other commands"),
    })
}

fn is_harmless(assignment: &Assignment) -> bool {
    let Assignment { name, value } = assignment;
    match is_locale_variable(name) {
        true => value.as_deref().is_some_and(locale_check::is_ascii_compatible),
        false => HARMLESS_VARIABLES.contains(&name.as_str()),
    }
}

/// `LANGUAGE` is not included: it is a list of directories from which programs load messages.
fn is_locale_variable(name: &str) -> bool {
    name == "LANG" || name.starts_with("LC_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_look_of_output_is_set_without_a_question() {
        let guard = |name: &str, value: Option<&str>| {
            ask_reason(&[Assignment { name: name.into(), value: value.map(str::to_owned) }])
        };
        for (name, value) in [("RUST_LOG", "debug"), ("LC_ALL", "C"), ("LANG", "de_DE.UTF-8"), ("LC_CTYPE", "C.utf8")] {
            assert_eq!(guard(name, Some(value)), None, "{name}={value}");
        }
        for (name, value) in [
            ("LC_ALL", Some("zh_CN.gbk")),
            ("LC_ALL", Some("zh_CN")),
            ("LC_ALL", Some("")),
            ("LC_CTYPE", None),
            ("LANG", Some("ja_JP.SJIS")),
            ("LANGUAGE", Some("de")),
            ("LOCPATH", Some("C")),
            ("POSIXLY_CORRECT", Some("1")),
            ("x", Some("1")),
        ] {
            assert!(guard(name, value).is_some(), "{name}={value:?}");
        }
    }
}
