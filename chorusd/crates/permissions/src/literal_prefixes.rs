//! Literal prefixes of patterns: the text that a pattern spells out before the first part that can match several texts.
//!
//! A rule allows a program only as far as it spells it out (docs/PERMISSIONS.md): `tool:bash:(ls|cargo (build|test))(
//! .*)?` spells out `ls`, `cargo build` and `cargo test`; `tool:.*` spells out no program.

use regex_automata::util::syntax;
use regex_syntax::hir::literal::Extractor;

use super::action::BASH_PREFIX;

/// Limit on the alternatives of one pattern. Patterns with more are reduced to the prefix that all alternatives share.
const MAX_ALTERNATIVES: usize = 2000;
/// Limit on the bytes of one alternative; longer than any pattern.
const MAX_ALTERNATIVE_LEN: usize = 8 << 10;

/// Literal prefixes of the commands that a pattern matches.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiteralPrefixes {
    /// Each prefix, with true if it is the whole command. Every command that the pattern matches starts with one of
    /// them.
    commands: Vec<(Box<[u8]>, bool)>,
    /// True if the pattern matches commands with any beginning.
    matches_any: bool,
}

impl LiteralPrefixes {
    /// Extracts the prefixes of a pattern, which must compile.
    pub(crate) fn new(pattern: &str) -> Self {
        let any = Self { commands: Vec::new(), matches_any: true };
        let Ok(hir) = syntax::parse(pattern) else { return any };
        let mut extractor = Extractor::new();
        extractor.limit_total(MAX_ALTERNATIVES).limit_literal_len(MAX_ALTERNATIVE_LEN).limit_class(4);
        let found = extractor.extract(&hir);
        let Some(literals) = found.literals() else { return any };
        let mut spelled = Self::default();
        for literal in literals {
            let bytes = literal.as_bytes();
            match bytes.strip_prefix(BASH_PREFIX.as_bytes()) {
                Some(command) => spelled.commands.push((command.into(), literal.is_exact())),
                None => spelled.matches_any |= !literal.is_exact() && BASH_PREFIX.as_bytes().starts_with(bytes),
            }
        }
        spelled
    }

    /// Returns how many bytes of `command` the pattern spells out, given that it matches. If several alternatives may
    /// be the matching one, the shortest counts.
    pub(crate) fn spelled_len(&self, command: &str) -> usize {
        let command = command.as_bytes();
        let fits = |(literal, whole): &&(Box<[u8]>, bool)| {
            if *whole { **literal == *command } else { command.starts_with(literal) }
        };
        let least = self.commands.iter().filter(fits).map(|(literal, _)| literal.len()).min();
        if self.matches_any { 0 } else { least.unwrap_or(0) }
    }

    /// Returns true if the pattern matches commands whose program it does not spell out.
    pub(crate) fn matches_any_program(&self) -> bool {
        self.matches_any || self.commands.iter().any(|(literal, whole)| !whole && !ends_at_word(literal))
    }
}

/// Returns true if a literal ends after a whole word, as far as the literal alone can show.
fn ends_at_word(literal: &[u8]) -> bool {
    literal.contains(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled<'a>(pattern: &str, command: &'a str) -> &'a str {
        let whole = format!(r"(?s)\A(?:{pattern})\z");
        assert!(
            regex::Regex::new(&whole).unwrap().is_match(&format!("{BASH_PREFIX}{command}")),
            "{pattern} matches {command}"
        );
        &command[..LiteralPrefixes::new(&whole).spelled_len(command)]
    }

    #[test]
    fn what_a_pattern_spells_out_is_found_through_groups_and_alternatives() {
        for (pattern, command, wanted) in [
            (".*", "ls x", ""),
            ("tool:.*", "ls x", ""),
            ("tool:bash:.*", "ls x", ""),
            ("tool:bash:ls", "ls", "ls"),
            ("tool:bash:ls.*", "ls x", "ls"),
            ("tool:bash:ls.*", "lsof x", "ls"),
            ("tool:bash:ls( .*)?", "ls", "ls"),
            ("tool:bash:ls( .*)?", "ls x", "ls "),
            ("tool:bash:(ls|grep|cargo (build|test))( .*)?", "cargo test --all", "cargo test "),
            ("tool:(view|bash):(ls|grep)( .*)?", "grep x", "grep "),
            ("tool:bash:(ls|.*)", "ls", ""),
            ("tool:bash:(npm( .*)?|npm run .*)", "npm run x", "npm "),
            ("tool:bash:(npm|npm run .*)", "npm run x", "npm run "),
            ("tool:bash:npm run .*", "npm run x", "npm run "),
            ("tool:bash:[a-z]+ .*", "ls x", ""),
            ("tool:bash:(?i)ls( .*)?", "LS x", "LS "),
            (r"tool:bash:\./x( .*)?", "./x y", "./x "),
            ("tool:bash:./x( .*)?", "./x y", ""),
            (r"tool:bash:\bls\b.*", "ls x", "ls"),
            ("tool:bash:l{1,2}s .*", "ls x", "l"),
            ("tool:bash:(rm )?ls", "rm ls", "rm ls"),
            ("tool:bash:é( .*)?", "é x", "é "),
        ] {
            assert_eq!(spelled(pattern, command), wanted, "{pattern}: {command}");
        }
    }

    #[test]
    fn a_pattern_of_too_many_alternatives_spells_out_no_program() {
        let many: Vec<String> = (0..3000).map(|number| format!("program{number}")).collect();
        let pattern = format!("tool:bash:({})( .*)?", many.join("|"));
        assert_eq!(spelled(&pattern, "program17 x"), "prog");
    }

    #[test]
    fn patterns_that_match_any_program_are_told_from_those_that_name_theirs() {
        for (pattern, wanted) in [
            (".*", true),
            ("tool:.*", true),
            ("tool:bash:.*", true),
            ("tool:bash:c.*", true),
            ("tool:bash:(ls|.*)", true),
            ("tool:bash:ls", false),
            ("tool:bash:(ls|cargo (build|test))( .*)?", false),
            ("tool:view:.*", false),
            ("tool:(view|create_file):.*", false),
        ] {
            assert_eq!(
                LiteralPrefixes::new(&format!(r"(?s)\A(?:{pattern})\z")).matches_any_program(),
                wanted,
                "{pattern}"
            );
        }
    }
}
