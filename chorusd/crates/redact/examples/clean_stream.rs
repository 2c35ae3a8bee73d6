//! Copies standard input to standard output with its secrets replaced, as it arrives:
//!
//! ```text
//! make 2>&1 | cargo run -p chorus-redact --example clean_stream
//! ```

use std::io::{self, Read, Write};
use std::sync::Arc;

use chorus_redact::Redactor;

/// Copies `input`. Equal secrets get equal fingerprints; a program that shows them would use a random key.
fn clean(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut stream = Arc::new(Redactor::new(|| [0; 32])).stream();
    let (mut piece, mut cleaned) = ([0; 8192], Vec::new());
    loop {
        match input.read(&mut piece)? {
            0 => break,
            length => stream.push_bytes(&piece[..length], &mut cleaned),
        }
        output.write_all(&cleaned)?;
        output.flush()?;
        cleaned.clear();
    }
    stream.finish_bytes(false, &mut cleaned);
    output.write_all(&cleaned)
}

fn main() -> io::Result<()> {
    clean(io::stdin().lock(), io::stdout().lock())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::clean;

    #[test]
    fn a_secret_that_arrives_in_two_pieces_is_replaced() {
        let (first, second) = (&b"key: ghp_16C7e42F292c6912"[..], &b"E7710c838347Ae178B4a\n"[..]);
        let mut output = Vec::new();
        clean(first.chain(second), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        assert!(output.starts_with("key: [redacted:") && output.ends_with("]\n"), "{output}");
    }
}
