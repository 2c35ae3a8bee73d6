//! CRC-32 as in Ethernet and gzip, eight bytes at a time. It detects every single flipped bit.

const CRC_TABLES: [[u32; 256]; 8] = build_tables();

const fn build_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xedb8_8320 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut byte = 0;
    while byte < 256 {
        let mut table = 1;
        while table < 8 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            table += 1;
        }
        byte += 1;
    }
    tables
}

/// Continues the checksum `before` (0 at the beginning) with `bytes`.
pub(crate) fn crc32(before: u32, bytes: &[u8]) -> u32 {
    let mut sum = !before;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let [a, b, c, d, e, f, g, h] = *eight;
        let low = (sum ^ u32::from_le_bytes([a, b, c, d])).to_le_bytes();
        let of = |table: usize, byte: u8| CRC_TABLES[table][usize::from(byte)];
        sum = of(7, low[0]) ^ of(6, low[1]) ^ of(5, low[2]) ^ of(4, low[3]) ^ of(3, e) ^ of(2, f) ^ of(1, g) ^ of(0, h);
    }
    for byte in rest {
        sum = CRC_TABLES[0][usize::from(sum.to_le_bytes()[0] ^ byte)] ^ (sum >> 8);
    }
    !sum
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
