//! Checks names of locales as in `LANG` and `LC_ALL`.
//!
//! A shell parses its commands in the character set of its locale. In UTF-8 and in the C locale every byte below 128 is
//! the ASCII character with that code; in GBK, Big5 or Shift-JIS it can be the second byte of a character, for example
//! a backslash.

/// Whether the locale reads ASCII bytes as ASCII: it is `C` or `POSIX`, or its character set is UTF-8.
#[must_use]
pub fn is_ascii_compatible(name: &str) -> bool {
    if matches!(name, "C" | "POSIX") {
        return true;
    }
    let (name, modifier) = name.split_once('@').unwrap_or((name, "x"));
    let Some((language, charset)) = name.split_once('.') else { return false };
    let alphanumeric = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    alphanumeric(language)
        && alphanumeric(modifier)
        && ["utf-8", "utf8"].iter().any(|utf8| charset.eq_ignore_ascii_case(utf8))
}

/// Whether each entry of a `LANGUAGE` list is the name of a language, without a path or another character set.
#[must_use]
pub fn is_language_list(names: &str) -> bool {
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'@'));
    names.split(':').all(|name| plain(name) || is_ascii_compatible(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_c_and_utf_8_read_ascii() {
        for name in ["C", "POSIX", "C.UTF-8", "C.utf8", "de_DE.UTF-8", "ca_ES.utf8@valencia", "sr_RS.UTF-8@latin"] {
            assert!(is_ascii_compatible(name), "{name}");
        }
        for name in [
            "",
            "c",
            "zh_CN",
            "zh_CN.gbk",
            "zh_CN.GB18030",
            "zh_TW.big5",
            "ja_JP.SJIS",
            "de_DE@euro",
            "japanese.sjis",
            ".UTF-8",
            "zh_CN.gbk.UTF-8",
            "zh_CN.UTF-8.gbk",
            "zh_CN.gbk@UTF-8",
            "../x.UTF-8",
            "/tmp/x.UTF-8",
            "C.UTF-8@",
            "C.UTF-8 ",
        ] {
            assert!(!is_ascii_compatible(name), "{name}");
        }
    }

    #[test]
    fn a_list_of_languages_names_no_path_and_no_character_set() {
        for names in ["", "de", "de_AT:de:en", "sr@latin", "de.UTF-8:C"] {
            assert!(is_language_list(names), "{names}");
        }
        for names in ["../../tmp", "de:/tmp", "zh_CN.gbk", "de:zh_CN.gbk"] {
            assert!(!is_language_list(names), "{names}");
        }
    }
}
