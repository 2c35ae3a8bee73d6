//! Programs that write files which their arguments name.
//!
//! Lists only programs that pass for readers or are part of a redirection. Files written by `cp` or `touch` are covered
//! by the pattern that allows the program.

use super::normalize::base_name;

/// Returns the files that a command writes because its arguments name them.
#[must_use]
pub(crate) fn written_files(words: &[&str]) -> Vec<String> {
    let Some((name, given)) = words.split_first() else { return Vec::new() };
    let files: Vec<&str> = match base_name(name).to_lowercase().as_str() {
        "tee" => operands(given, &[], false),
        "dd" => given.iter().filter_map(|word| word.strip_prefix("of=")).collect(),
        "uniq" => after_first(&operands(given, &["-f", "-s", "-w"], false)),
        "xxd" => after_first(&operands(given, &["-c", "-g", "-l", "-n", "-o", "-s", "-R"], true)),
        _ => Vec::new(),
    };
    files.into_iter().map(str::to_owned).collect()
}

/// Returns the operands behind the input file, without `-`. All of them count, because some may be values of unknown
/// options.
fn after_first<'a>(operands: &[&'a str]) -> Vec<&'a str> {
    operands.iter().skip(1).filter(|word| **word != "-").copied().collect()
}

/// Returns the words that are not options. `valued` lists options whose value is the next word. With `first`, options
/// end at the first operand; otherwise only at `--`.
fn operands<'a>(given: &[&'a str], valued: &[&str], first: bool) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = given.iter();
    while let Some(word) = rest.next() {
        if *word == "--" {
            break;
        } else if valued.contains(word) {
            rest.next();
        } else if *word == "-" || !word.starts_with('-') {
            found.push(*word);
            if first {
                break;
            }
        }
    }
    found.extend(rest);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_options() {
        for (command, wanted) in [
            ("tee -a x y", "x y"),
            ("tee -- -d/../q x", "-d/../q x"),
            ("tee x -- -a", "x -a"),
            ("tee - x", "- x"),
            ("dd if=x of=y", "y"),
            ("uniq -c x", ""),
            ("uniq x y", "y"),
            ("uniq -f 1 x", ""),
            ("uniq -f 1 x -c y", "y"),
            ("uniq - -- -x", "-x"),
            ("uniq x -", ""),
            ("xxd -c 8 x", ""),
            ("xxd -r x y", "y"),
            ("xxd x -y", "-y"),
            ("xxd -- x -y", "-y"),
            ("cat x y", ""),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(written_files(&words).join(" "), wanted, "{command}");
        }
    }
}
