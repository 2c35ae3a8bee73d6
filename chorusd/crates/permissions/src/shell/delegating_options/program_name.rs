//! Names under which programs are installed, with a version at the end or a target machine in front.

use super::{MAX_PROGRAM_NAME_LEN, RESPONSE_FILE_PROGRAMS};

/// Interpreters whose version stands in the middle of the name: `perl5.36-x86_64-linux-gnu`.
const VERSIONED_INTERPRETERS: [&str; 16] = [
    "perl", "python", "pypy", "ruby", "lua", "luajit", "php", "node", "tclsh", "wish", "guile", "cpan", "gawk", "gdb",
    "bash", "erl",
];

/// Returns the name that the tables use for a program: without its version and, for compiler tools, without the target
/// machine.
#[must_use]
pub(crate) fn canonical_name(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if let Some(start) = VERSIONED_INTERPRETERS.into_iter().find(|start| {
        name.strip_prefix(start)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-')))
    }) && !plain.ends_with("-config")
    {
        return start;
    }
    // The number in `c99` is no version.
    for name in [name, plain] {
        // Only tails of a plausible length: a name with many dashes has as many tails.
        let tails =
            name.match_indices('-').map(|(at, _)| &name[at + 1..]).filter(|tail| tail.len() <= *MAX_PROGRAM_NAME_LEN);
        if let Some(tool) = std::iter::once(name).chain(tails).find(|tail| RESPONSE_FILE_PROGRAMS.contains(tail)) {
            return tool;
        }
    }
    plain
}

/// Returns true if a program is named by a path in `/proc` or `/dev`: `/proc/self/exe` is the shell, `/dev/fd/3` may be
/// any program.
#[must_use]
pub(crate) fn is_kernel_path(name: &str) -> bool {
    let mut parts = name.split('/').filter(|part| !matches!(*part, "" | "."));
    let kernel = |part: &str| matches!(part, "proc" | "dev");
    if !name.contains('/') {
        return false;
    }
    // With `..` in the path, links decide where it leads, so any component counts.
    if name.starts_with('/') || name.split('/').any(|part| part == "..") {
        return parts.any(kernel);
    }
    parts.next().is_some_and(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_machines_are_left_out() {
        for (name, wanted) in [
            ("gcc", "gcc"),
            ("gcc-12", "gcc"),
            ("x86_64-linux-gnu-gcc-12.2", "gcc"),
            ("arm-none-eabi-g++", "g++"),
            ("x86_64-linux-gnu-ld.gold", "ld.gold"),
            ("gcc-ar-12", "gcc-ar"),
            ("llvm-ar-14", "ar"),
            ("c89-gcc", "gcc"),
            ("c99", "c99"),
            ("x86_64-w64-mingw32-c99", "c99"),
            ("perl5.36.0", "perl"),
            ("perl5.36-x86_64-linux-gnu", "perl"),
            ("python3.11", "python"),
            ("python3.11-config", "python3.11-config"),
            ("pip3.11", "pip"),
            ("apt-get", "apt-get"),
            ("npm", "npm"),
        ] {
            assert_eq!(canonical_name(name), wanted, "{name}");
        }
        // The time must not grow with the square of the length.
        let long = "-x".repeat(1 << 20) + "-gcc-ar";
        assert_eq!(canonical_name(&long), "gcc-ar");
    }

    #[test]
    fn programs_of_the_kernel_are_known_by_their_path() {
        for (name, wanted) in [
            ("/proc/self/exe", true),
            ("//proc/./self/exe", true),
            ("/usr/../proc/self/exe", true),
            ("../../../proc/self/root/bin/rm", true),
            ("proc/self/exe", true),
            ("/dev/fd/3", true),
            ("/dev/shm/x", true),
            ("./dev/x", true),
            ("scripts/dev/x", false),
            ("proc", false),
            ("/bin/ls", false),
        ] {
            assert_eq!(is_kernel_path(name), wanted, "{name}");
        }
    }
}
