//! The variables that make tests run longer, with what a long run sets them to.

/// A variable that a test reads.
#[derive(Debug)]
pub struct Switch {
    pub name: &'static str,
    /// Set by `cargo xtask long`.
    pub long: &'static str,
}

const fn switch(name: &'static str, long: &'static str) -> Switch {
    Switch { name, long }
}

/// `CONTRIBUTING.md` explains them; `CHORUS_DISCORD_SCRIPTS` follows from `CHORUS_FAULTS`.
pub const LONG: [Switch; 15] = [
    switch("CHORUS_FAULTS", "all"),
    switch("CHORUS_BASH_ROUNDS", "3000"),
    switch("CHORUS_CAPTURE_KILLS", "100"),
    switch("CHORUS_CLUSTER_ROUNDS", "600"),
    switch("CHORUS_CLUSTER_SECONDS", "600"),
    switch("CHORUS_CRASH_ROUNDS", "300"),
    switch("CHORUS_HOST_CUTS", "100"),
    switch("CHORUS_FILL_CYCLES", "100"),
    switch("CHORUS_FUZZ_ROUNDS", "30000"),
    switch("CHORUS_IMPORT_MB", "500"),
    switch("CHORUS_MODEL", "long"),
    switch("CHORUS_PERMISSION_ROUNDS", "40000"),
    switch("CHORUS_RACE_ROUNDS", "30"),
    switch("CHORUS_SECOND_STARTS", "100"),
    switch("CHORUS_WINDOW_ROUNDS", "200000"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workspace::{read, root, sources};

    /// Every name in quotes that begins with `CHORUS_` and that tests read for themselves.
    fn read_by_tests() -> BTreeSet<String> {
        let root = root().unwrap();
        let mut found = BTreeSet::new();
        for folder in ["tests/e2e", "tests/harness", "chorusd"] {
            for path in sources(&root.join(folder)).unwrap() {
                let text = read(&path).unwrap();
                for reads in ["rounds_from_env(\"", "seed_from_env(\"", "env::var(\"", "env::var_os(\""] {
                    let names = text.split(reads).skip(1).filter_map(|rest| rest.split('"').next());
                    found.extend(names.filter(|name| name.starts_with("CHORUS_")).map(str::to_owned));
                }
            }
        }
        found
    }

    #[test]
    fn a_long_run_sets_every_number_of_rounds() {
        let root = root().unwrap();
        let known: BTreeSet<_> = LONG.iter().map(|switch| switch.name).chain(["CHORUS_DISCORD_SCRIPTS"]).collect();
        for path in sources(&root.join("tests/e2e")).unwrap() {
            let text = read(&path).unwrap();
            for name in text.split("rounds_from_env(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(known.contains(name), "{name} of {} is missing in xtask/src/switches.rs", path.display());
            }
        }
        let read = read_by_tests();
        for name in known {
            assert!(read.contains(name), "no test reads {name}");
        }
    }

    #[test]
    fn contributing_explains_every_switch_of_the_tests() {
        let page = read(&root().unwrap().join("CONTRIBUTING.md")).unwrap();
        for name in read_by_tests() {
            assert!(page.contains(&format!("| `{name}` |")), "CONTRIBUTING.md has no row for {name}");
        }
    }
}
