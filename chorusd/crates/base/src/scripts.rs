//! Scripts of text, as far as searches tell them apart.

/// Returns true for characters of scripts that put no spaces between words, and of Korean, which adds particles to words. Marks and
/// punctuation of these scripts are among them.
#[must_use]
pub fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff // Thai, Lao
        | 0x1100..=0x11ff | 0x3040..=0x30ff | 0x3130..=0x318f | 0x31f0..=0x31ff // Hangul, Kana
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0xff66..=0xff9f
        | 0x20000..=0x323af)
}
