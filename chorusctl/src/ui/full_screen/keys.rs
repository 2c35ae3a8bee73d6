//! Reads keys from the bytes that a terminal sends.

/// Bytes of a paste that are kept; more is not a query.
const MAX_PASTE_BYTES: usize = 4096;

/// Longest escape sequence, apart from a paste. What is longer is no key.
const MAX_SEQUENCE_BYTES: usize = 64;

/// A key, or a pasted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// Ctrl with a lower-case letter.
    Ctrl(char),
    Paste(String),
    Enter,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Esc,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// A key without a meaning here.
    Other,
}

/// Collects bytes until they are keys.
#[derive(Debug, Default)]
pub(super) struct KeyParser {
    bytes: Vec<u8>,
    /// Beginning of a long paste, which is kept.
    paste: Option<Vec<u8>>,
}

impl KeyParser {
    /// Appends what was read and returns the keys that are complete.
    pub(super) fn feed(&mut self, read: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(read);
        let (mut keys, mut at) = (Vec::new(), 0);
        loop {
            let rest = &self.bytes[at..];
            if let Some(paste) = &mut self.paste {
                let end = rest.windows(PASTE_END.len()).position(|window| window == PASTE_END);
                // The last bytes may begin the end.
                let length = end.unwrap_or((rest.len() + 1).saturating_sub(PASTE_END.len()));
                let room = MAX_PASTE_BYTES.saturating_sub(paste.len());
                paste.extend_from_slice(&rest[..length.min(room)]);
                at += length;
                if end.is_none() {
                    break;
                }
                at += PASTE_END.len();
                keys.extend(self.paste.take().map(|paste| Key::Paste(text_of(&paste))));
            } else if rest.starts_with(PASTE_START) {
                at += PASTE_START.len();
                self.paste = Some(Vec::new());
            } else if let Some((key, length)) = next_key(rest) {
                keys.extend(key);
                at += length;
            } else {
                break;
            }
        }
        self.bytes.drain(..at);
        keys
    }

    /// Returns true if the last byte begins an escape sequence, or is the key Esc: only time tells.
    pub(super) fn is_waiting(&self) -> bool {
        self.paste.is_none() && self.bytes.first() == Some(&b'\x1b')
    }

    /// Ends the wait: Esc was pressed.
    pub(super) fn end_wait(&mut self) -> Vec<Key> {
        let is_esc = self.bytes == b"\x1b";
        self.bytes.clear();
        vec![if is_esc { Key::Esc } else { Key::Other }]
    }
}

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Returns the first key and its length; no key for bytes that are none, `None` if more bytes are needed.
fn next_key(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let first = *bytes.first()?;
    match first {
        b'\x1b' => escape_sequence(bytes),
        b'\r' | b'\n' => Some((Some(Key::Enter), 1)),
        b'\t' => Some((Some(Key::Tab), 1)),
        0x7f | 0x08 => Some((Some(Key::Backspace), 1)),
        1..=26 => Some((Some(Key::Ctrl(char::from(first - 1 + b'a'))), 1)),
        0..=0x1f => Some((Some(Key::Other), 1)),
        _ => character(bytes),
    }
}

/// Returns the text of a paste, without a character at its end that was cut in two.
fn text_of(paste: &[u8]) -> String {
    let valid = match std::str::from_utf8(paste) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => paste.len(),
    };
    String::from_utf8_lossy(&paste[..valid]).into_owned()
}

fn character(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
        // The rest of the character is still to come.
        Err(error) if error.error_len().is_none() => return None,
        Err(_) => return Some((None, 1)),
    };
    let c = valid.chars().next()?;
    Some((Some(if c.is_control() { Key::Other } else { Key::Char(c) }), c.len_utf8()))
}

fn escape_sequence(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    match bytes.get(1)? {
        b'[' => control_sequence(bytes),
        b'O' => Some((Some(named_key(&[], *bytes.get(2)?)), 3)),
        b'\x1b' => Some((Some(Key::Esc), 1)),
        // Alt with a key.
        _ => next_key(&bytes[1..]).map(|(_, length)| (Some(Key::Other), length + 1)),
    }
}

fn control_sequence(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let Some(length) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (bytes.len() > MAX_SEQUENCE_BYTES).then_some((Some(Key::Other), bytes.len()));
    };
    Some((Some(named_key(&bytes[2..2 + length], bytes[2 + length])), length + 3))
}

/// Returns the key of an escape sequence. With Shift, Alt or Ctrl it is the same, except for Ctrl with letters.
fn named_key(parameters: &[u8], last: u8) -> Key {
    let first = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    match (last, first) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'Z', _) => Key::BackTab,
        (b'M', []) => Key::Enter,
        (b'~', b"3") => Key::Delete,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Key> {
        KeyParser::default().feed(text.as_bytes())
    }

    #[test]
    fn characters_and_control_keys() {
        let expected = [
            Key::Char('a'),
            Key::Char('ß'),
            Key::Char('你'),
            Key::Enter,
            Key::Tab,
            Key::Backspace,
            Key::Ctrl('c'),
            Key::Ctrl('z'),
        ];
        assert_eq!(keys("aß你\r\t\u{7f}\u{3}\u{1a}"), expected);
    }

    #[test]
    fn keys_of_different_terminals() {
        assert_eq!(keys("\x1b[A\x1bOB\x1b[1;5C\x1b[D"), [Key::Up, Key::Down, Key::Right, Key::Left]);
        assert_eq!(
            keys("\x1b[H\x1b[4~\x1b[3~\x1b[5~\x1b[6~"),
            [Key::Home, Key::End, Key::Delete, Key::PageUp, Key::PageDown]
        );
        assert_eq!(
            keys("\x1b[Z\x1b[15~\x1bx\x1b[<0;1;1Mq"),
            [Key::BackTab, Key::Other, Key::Other, Key::Other, Key::Char('q')]
        );
    }

    #[test]
    fn a_sequence_may_arrive_in_pieces() {
        let mut parser = KeyParser::default();
        assert_eq!(parser.feed(b"x\x1b"), [Key::Char('x')]);
        assert!(parser.is_waiting());
        assert_eq!(parser.feed(b"["), []);
        assert_eq!(parser.feed(b"A"), [Key::Up]);
        assert!(!parser.is_waiting());
        let [first, rest @ ..] = "你".as_bytes() else { return };
        assert_eq!(parser.feed(&[*first]), []);
        assert!(!parser.is_waiting());
        assert_eq!(parser.feed(rest), [Key::Char('你')]);
        assert_eq!(parser.feed(b"\x1b"), []);
        assert_eq!(parser.end_wait(), [Key::Esc]);
        assert_eq!(parser.feed(b"\x1b[1"), []);
        assert_eq!((parser.end_wait(), parser.feed(b"a")), (vec![Key::Other], vec![Key::Char('a')]));
        assert_eq!(parser.feed(b"\x1b\x1b[A"), [Key::Esc, Key::Up]);
    }

    #[test]
    fn a_paste_is_one_text_and_no_keys() {
        let mut parser = KeyParser::default();
        assert_eq!(parser.feed(b"\x1b[200~one\rtwo"), []);
        assert!(!parser.is_waiting());
        assert_eq!(parser.feed(b"\x1b[A\x1b[201~!"), [Key::Paste("one\rtwo\x1b[A".into()), Key::Char('!')]);
        let both = [Key::Paste("a".into()), Key::Paste(String::new()), Key::Esc];
        assert_eq!(parser.feed(b"\x1b[200~a\x1b[201~\x1b[200~\x1b[201~\x1b\x1b"), both);
        assert_eq!(parser.feed(b"[200~"), []);
        for byte in "é\x1b[20\x1b[201~".bytes().take(11) {
            assert!(parser.feed(&[byte]).is_empty() && !parser.is_waiting());
        }
        assert_eq!(parser.feed(b"~"), [Key::Paste("é\x1b[20".into())]);
    }

    #[test]
    fn a_long_paste_is_read_once_and_its_begin_is_kept() {
        let mut parser = KeyParser::default();
        parser.feed(PASTE_START);
        // What was read is not looked through again, or this takes hours.
        let read = "xé".repeat(4096 / 3);
        for _ in 0..5000 {
            assert_eq!(parser.feed(read.as_bytes()), []);
            assert!(parser.bytes.len() < PASTE_END.len());
        }
        let keys = parser.feed(PASTE_END);
        let [Key::Paste(text)] = &keys[..] else { panic!("{keys:?}") };
        assert!(text.len().abs_diff(MAX_PASTE_BYTES) < 2 && text.chars().all(|c| matches!(c, 'x' | 'é')));
    }

    #[test]
    fn bytes_that_are_no_text_are_dropped() {
        assert_eq!(
            KeyParser::default().feed(b"a\xff\xfeb\xc2\x9bc"),
            [Key::Char('a'), Key::Char('b'), Key::Other, Key::Char('c')]
        );
        let endless = [b"\x1b[".as_slice(), &[b'1'; 200]].concat();
        assert_eq!(KeyParser::default().feed(&endless), [Key::Other]);
    }
}
