//! Programs that write files which their arguments do not name: members of an archive, files of a patch, the target of
//! a clone. Any of these files may be a `.git` or a link to one.

use super::normalize::base_name;

/// Returns the reason why a command may write files that it does not name, as a text that continues "it is asked about
/// because".
#[must_use]
pub(super) fn ask_reason(words: &[&str]) -> Option<String> {
    let (name, given) = words.split_first()?;
    let name = base_name(name).to_lowercase();
    if name == "git" {
        return git_ask_reason(given);
    }
    let unpacks = match name.as_str() {
        "tar" | "gtar" | "bsdtar" | "star" | "gnutar" => {
            has_short_option(given, "x")
                || first_word_is(given, |word| !word.starts_with('-') && word.contains('x'))
                || has_long_option(given, &["--extract", "--get"])
        }
        "cpio" | "bsdcpio" | "gcpio" => {
            has_short_option(given, "ip") || has_long_option(given, &["--extract", "--pass-through"])
        }
        "pax" => has_short_option(given, "r"),
        "unzip" | "bsdunzip" => !unzip_only_reads(given),
        "7z" | "7za" | "7zr" | "7zz" | "rar" | "unrar" => !first_word_is(given, |verb| {
            ["a", "b", "h", "i", "l", "lb", "lt", "p", "t", "v", "vb", "vt"].contains(&verb)
        }),
        "jar" => {
            has_short_option(given, "x")
                || first_word_is(given, |word| !word.starts_with('-') && word.contains('x'))
                || has_long_option(given, &["--extract"])
        }
        "gzip" | "gunzip" | "pigz" | "unpigz" => has_short_option(given, "N") || has_long_option(given, &["--name"]),
        "dpkg-deb" | "dpkg" => {
            has_short_option(given, "xXRe")
                || has_long_option(given, &["--extract", "--vextract", "--raw-extract", "--control"])
        }
        "dpkg-source" => has_short_option(given, "x") || has_long_option(given, &["--extract"]),
        // From remote machines, or by a file that lists changes.
        "rsync" => {
            has_long_option(given, &["--read-batch", "--files-from"])
                || given.iter().any(|word| !word.starts_with('-') && word.contains(':'))
        }
        "wget" => {
            has_short_option(given, "rmxpi")
                || has_long_option(
                    given,
                    &["--recursive", "--mirror", "--force-directories", "--page-requisites", "--input-file"],
                )
                || has_long_option(given, &["--content-disposition", "--trust-server-names"])
        }
        "curl" => has_short_option(given, "J") || has_long_option(given, &["--remote-header-name"]),
        // Prefixes of file names to which the program adds a suffix.
        "split" | "csplit" => given.iter().any(|word| is_prefix_of_git_dir(word)),
        name if name == "ar" || name.ends_with("-ar") => first_word_is(given, |word| word.contains('x')),
        name => UNPACKERS.contains(&name),
    };
    unpacks.then(|| format!("`{name}` writes files that the command does not name, possibly a `.git`"))
}

/// Programs that do nothing else, or do so unless an option prevents it.
const UNPACKERS: &[&str] = &[
    "arj",
    "atool",
    "aunpack",
    "cabextract",
    "dtrx",
    "innoextract",
    "lha",
    "munpack",
    "ouch",
    "patch",
    "ripmime",
    "unace",
    "unar",
    "unp",
    "unshar",
    "unsquashfs",
    "uudecode",
    "uudeview",
    "wimapply",
    "xar",
];

/// Returns true if a group of one-letter options contains one of these letters: `-xf` contains `x`.
fn has_short_option(given: &[&str], wanted: &str) -> bool {
    let short = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
    given.iter().filter(short).any(|word| word.contains(|c| wanted.contains(c)))
}

/// Returns true if a word is one of these long options or an abbreviation of one.
fn has_long_option(given: &[&str], wanted: &[&str]) -> bool {
    let names = given.iter().filter_map(|word| word.split('=').next()).filter(|name| name.len() > 2);
    names.into_iter().any(|name| wanted.iter().any(|option| option.starts_with(name)))
}

fn first_word_is(given: &[&str], wanted: impl Fn(&str) -> bool) -> bool {
    given.first().is_some_and(|word| wanted(word))
}

/// Returns true if `unzip` lists, tests or prints: its first word says so, and no later option changes that.
fn unzip_only_reads(given: &[&str]) -> bool {
    let Some((mode, rest)) = given.split_first() else { return false };
    let envelopes = mode.strip_prefix('-').unwrap_or_default();
    !envelopes.trim_start_matches('q').is_empty()
        && envelopes.bytes().all(|b| b"qltvpcZ".contains(&b))
        && !rest.iter().any(|word| word.starts_with('-'))
}

/// Returns true if the last component of a path becomes `.git` when letters are added.
fn is_prefix_of_git_dir(word: &str) -> bool {
    let last = base_name(word.rsplit('=').next().unwrap_or(word)).to_lowercase();
    let last = if last.starts_with('-') { last.rfind('.').map_or("", |at| &last[at..]) } else { &last };
    !last.is_empty() && ".git".starts_with(last)
}

/// Returns the directory that `git push` is told to push to. The receiving git there runs without the environment
/// settings that disable hooks.
fn local_push_target<'a>(given: &[&'a str]) -> Option<&'a str> {
    let local = |place: &str| {
        let before = place.split_once('/').map(|(before, _)| before);
        let file = place.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
        matches!(place, "." | "..") || file || before.is_some_and(|before| !before.contains(':'))
    };
    let repo = given.iter().filter_map(|word| word.split_once('='));
    let repo = repo.filter(|(option, _)| option.len() > 2 && "--repo".starts_with(option)).map(|(_, place)| place);
    // The word behind these options may be their value, and then a later word is the remote.
    let valued = has_short_option(given, "o") || {
        let mut open = given.iter().filter(|word| !word.contains('='));
        open.any(|word| word.len() > 2 && ["--push-option", "--repo"].iter().any(|option| option.starts_with(word)))
    };
    let operands = given.iter().filter(|word| !word.starts_with('-')).copied();
    let count = if valued { usize::MAX } else { 1 };
    repo.chain(operands.take(count)).find(|place| local(place))
}

/// `apply` may create links, `clone` may write anywhere, and `push` to a directory runs the hooks there.
fn git_ask_reason(given: &[&str]) -> Option<String> {
    let verb = given.iter().position(|word| !word.starts_with('-'))?;
    let (verb, given) = (given[verb], &given[verb + 1..]);
    let quiet = ["--check", "--stat", "--numstat", "--summary"];
    let applies = given.iter().any(|word| word.starts_with("--a")) || !given.iter().any(|word| quiet.contains(word));
    if verb == "apply" && applies {
        return Some("`git apply` writes files that the command does not name, possibly links to `.git`".into());
    }
    if verb == "push"
        && let Some(place) = local_push_target(given)
    {
        return Some(format!("`git push` to a directory runs the hooks of the repository there ({place})"));
    }
    let mut places = given.iter().filter(|word| !word.starts_with('-'));
    if verb == "clone" {
        // Skip the clone's source. If this skips the value of an option instead, the source is checked too.
        places.next();
    }
    let outside = |word: &&&str| word.starts_with('/') || word.split('/').any(|part| part == "..");
    let outside = places.find(outside).filter(|_| ["clone", "init"].contains(&verb))?;
    Some(format!("`git {verb}` creates a repository outside the workspace ({outside})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(command: &str) -> bool {
        ask_reason(&command.split(' ').collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn what_unpacks_is_asked_about() {
        for command in [
            "tar xf a.tar",
            "/bin/TAR -xzf a.tgz -C sub",
            "tar --extract --file a.tar",
            "tar -C x --ext -f a",
            "bsdtar -x -f a.zip",
            "cpio -idm",
            "cpio -p x",
            "pax -r",
            "unzip a.zip",
            "unzip -o a.zip -d x",
            "unzip -dl a.zip",
            "unzip -l a.zip -l-",
            "unzip -q a.zip",
            "7z x a.7z",
            "7z -y e a.7z",
            "unrar x a",
            "jar xf a.jar",
            "ar x lib.a",
            "gcc-ar -x lib.a",
            "gunzip -N a.gz",
            "dpkg-deb -x a.deb .",
            "patch -p1",
            "uudecode a",
            "rsync -a host:x .",
            "rsync --read-batch=x .",
            "wget -r http://x/",
            "wget --content-disp http://x/",
            "curl -OJ http://x/",
            "split -a1 x .g",
            "csplit -f. x 1",
            "csplit --prefix=x/.gi x 1",
            "git apply x.patch",
            "git apply --stat --apply x.patch",
            "git clone x ../y",
            "git clone --depth 1 x /tmp/y",
            "git --no-pager clone x a/../../y",
            "git init ../x",
            "git init -q /tmp/x",
            "git push ../x",
            "git push -q /tmp/x main",
            "git --no-pager push sub/x",
            "git push . a:b",
            "git push ..",
            "git push file:///tmp/x",
            "git push --repo=../x",
            "git push --rep ../x",
            "git push -o a ../x",
            "git push -- ./a:b",
        ] {
            assert!(asks(command), "{command}");
        }
    }

    #[test]
    fn what_packs_lists_or_names_its_files_is_not() {
        for command in [
            "tar -czf a.tgz src",
            "tar tzf a.tgz",
            "tar -cf a.tar --exclude=x src",
            "cpio -o",
            "unzip -l a.zip",
            "unzip -qp a.zip x",
            "7z l a.7z",
            "7z a a.7z src",
            "jar tf a.jar",
            "ar rcs libx.a x.o",
            "gzip -9 x",
            "dpkg -l",
            "rsync -a src/ out/",
            "wget -qO- http://x/y",
            "curl -sSLO http://x/y",
            "split -l 9 x out.",
            "split -b 1M ./x",
            "git apply --check x.patch",
            "git clone https://x/y.git",
            "git clone ../x y",
            "git init x",
            "git checkout ../x",
            "git push",
            "git push origin feature/x",
            "git push -u origin refs/heads/a:refs/heads/b",
            "git push https://host/x.git main",
            "git push git@host:x/y.git",
            "git push host:x",
        ] {
            assert!(!asks(command), "{command}");
        }
    }
}
