//! CRC-32 as in Ethernet and gzip. It detects every single flipped bit.

use crc32fast::Hasher;

/// Continues the checksum `before` (0 at the beginning) with `bytes`.
#[must_use]
pub fn crc32(before: u32, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(before);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn it_is_the_crc_of_the_textbooks_in_one_piece_or_in_two() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(0, b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
        assert_eq!(crc32(crc32(0, b"The quick bro"), b"wn fox jumps over the lazy dog"), 0x414f_a339);
        assert_eq!(crc32(0, b""), 0);
    }
}
