//! Character sets in which the second byte of a character may be a backslash: bash never reads a command in one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chorus_permissions::{Profile, ProfileSpec};
use chorus_proto::methods::permissions::Decision;
use serde_json::json;

use super::action;

/// Locales in these character sets, each with a text whose last byte begins a character in it.
pub const SETS: [(&str, &str); 4] = [("GBK", "你"), ("GB18030", "你"), ("BIG5", "中"), ("SJIS", "ぃ")];

/// The name of the locale in a character set.
pub fn name(set: &str) -> String {
    format!("zz_ZZ.{set}")
}

/// Makes the locales in a directory, for `LOCPATH`; `None` if this machine cannot, which is said.
pub fn make(dir: &Path) -> Option<()> {
    for (set, _) in SETS {
        let ascii: String = (0..128).map(|code| format!("<U{code:04X}> /x{code:02x}\n")).collect();
        let head =
            format!("<code_set_name> {set}\n<comment_char> %\n<escape_char> /\n<mb_cur_min> 1\n<mb_cur_max> 4\n");
        let charmap = dir.join(format!("charmap.{set}"));
        fs::write(&charmap, format!("{head}CHARMAP\n{ascii}END CHARMAP\n")).expect("a character map");
        let mut localedef = Command::new("localedef");
        localedef.args(["--no-archive", "-c", "-i", "POSIX", "-f"]).arg(charmap).arg(dir.join(name(set)));
        // Its status differs for mere warnings.
        if localedef.output().is_err() || !dir.join(name(set)).join("LC_CTYPE").exists() {
            chorus_tests::skip("no locales can be made here (localedef, /usr/share/i18n)");
            return None;
        }
    }
    Some(())
}

/// A command that is one `echo` in UTF-8, and writes the file `hit` in the character set that `text` is meant for.
pub fn attack(text: &str) -> String {
    format!("echo \"{text}\\\" > hit ; echo \"{text}\\\"")
}

/// Runs a command in bash, and answers whether it wrote the file `hit`.
fn hits(work: &Path, locales: &Path, env: &[(&str, &str)], command: &str) -> bool {
    let hit = work.join("hit");
    let _ = fs::remove_file(&hit);
    let mut bash = Command::new("/bin/bash");
    bash.args(["--noprofile", "--norc", "-c", command]).current_dir(work).env_clear();
    bash.env("LOCPATH", locales).envs(env.iter().copied()).output().expect("bash");
    hit.exists()
}

#[test]
fn a_command_that_changes_the_character_set_is_asked_about() {
    let folder = tempfile::tempdir().expect("a directory");
    let [locales, work]: [PathBuf; 2] = ["locales", "work"].map(|name| folder.path().join(name));
    for dir in [&locales, &work] {
        fs::create_dir(dir).expect("a directory");
    }
    if make(&locales).is_none() {
        return;
    }
    let spec = json!({"deny": ["tool:create_file:.*"], "allow": ["tool:bash:.*"]});
    let echo = Profile::new(ProfileSpec::from_json(spec.as_object().expect("an object")).expect("a profile"))
        .expect("a profile");
    for (set, text) in SETS {
        let (locale, attack) = (name(set), attack(text));
        let utf8 = [("LANG", "C.UTF-8")];
        // It is what it seems to be in UTF-8 and in C, and is not in this one.
        assert_eq!(echo.judge(&action(&attack)).decision, Decision::Allow);
        assert!(!hits(&work, &locales, &utf8, &attack) && !hits(&work, &locales, &[("LC_ALL", "C")], &attack));
        assert!(hits(&work, &locales, &[("LC_ALL", &locale)], &attack), "{set}: bash reads it as in UTF-8");
        let mut hit = 0;
        for before in [
            format!("LC_ALL={locale}\n"),
            format!("LC_ALL='{locale}'; \n"),
            format!("LC_CTYPE=\"{locale}\"\n"),
            format!("LANG={locale}\n"),
            format!("LC_ALL={}\nLC_ALL+={}\n", &locale[..3], &locale[3..]),
            format!("LC_ALL=C\nLC_CTYPE={locale}\nLC_ALL=\n"),
            format!("ls; LC_ALL={locale}\n"),
        ] {
            let command = before + &attack;
            assert_eq!(echo.judge(&action(&command)).decision, Decision::Ask, "{command:?}");
            hit += u32::from(hits(&work, &locales, &utf8, &command));
        }
        assert!(hit >= 5, "{set}: only {hit} of these lines change how bash reads the next");
        for before in ["LC_ALL=C\n", "LC_ALL=C.UTF-8\n", "LANG=POSIX\n", "LC_CTYPE=de_DE.utf8 "] {
            let command = before.to_owned() + &attack;
            assert_eq!(echo.judge(&action(&command)).decision, Decision::Allow, "{command:?}");
            assert!(!hits(&work, &locales, &utf8, &command), "{command:?}");
        }
    }
}
