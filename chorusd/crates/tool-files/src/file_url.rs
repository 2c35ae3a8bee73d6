//! URLs of files.

/// Returns the path of a URL `file:///…` on this machine.
#[must_use]
pub fn path_of_file_url(url: &str) -> Option<String> {
    let encoded = url.strip_prefix("file://").filter(|path| path.starts_with('/'))?.as_bytes();
    let (mut path, mut at) = (Vec::with_capacity(encoded.len()), 0);
    while let Some(byte) = encoded.get(at) {
        let hex = encoded.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex.filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        path.push(decoded.unwrap_or(*byte));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_urls_are_paths() {
        assert_eq!(path_of_file_url("file:///srv/a%20b%C3%A9").as_deref(), Some("/srv/a bé"));
        assert_eq!(path_of_file_url("file:///srv/100%").as_deref(), Some("/srv/100%"));
        assert_eq!(path_of_file_url("file:///srv/%ff"), None);
        assert_eq!(path_of_file_url("vscode-remote://wsl/srv"), None);
    }
}
