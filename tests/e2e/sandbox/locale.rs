//! The locale of commands: in UTF-8 or C, whatever the daemon's is.

use std::fs;

use super::{run_command, start_sandbox};
use crate::permissions::locale;

#[test]
fn bash_reads_commands_in_utf_8_whatever_the_locale_of_the_daemon() {
    for (set, text) in locale::SETS {
        let name = locale::name(set);
        for variable in ["LANG", "LC_ALL", "LC_CTYPE"] {
            let Some(fixture) = start_sandbox("namespaces", &[(variable, &name)]) else { return };
            let locales = fixture.workspace("a").join("locales");
            fs::create_dir(&locales).expect("a directory");
            if locale::make(&locales).is_none() {
                return;
            }
            fs::write(fixture.workspace("a").join("attack"), locale::attack(text)).expect("a file");
            let run =
                |locale: &str| format!("rm -f hit; {locale} LOCPATH=$PWD/locales bash -c \"$(cat attack)\"; ls hit");
            assert!(run_command(&fixture, &run("")).is_error, "{variable}={name}");
            // It can be read otherwise: with what the daemon has it would have been.
            assert!(
                run_command(&fixture, &run(&format!("{variable}={name}"))).text.contains("hit\n"),
                "{variable}={name}"
            );
        }
    }
    let Some(fixture) =
        start_sandbox("namespaces", &[("LANG", "de_DE.UTF-8"), ("LC_TIME", "C"), ("LANGUAGE", "de:en")])
    else {
        return;
    };
    assert_eq!(run_command(&fixture, "echo $LANG $LC_TIME $LANGUAGE").ok(), "de_DE.UTF-8 C de:en\n");
}
