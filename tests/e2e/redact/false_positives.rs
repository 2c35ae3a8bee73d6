//! P20, the other half: plain text stays as it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_redact::Redactor;
use chorus_tests::real_data;

use super::secrets::made;
use crate::tidy::source::sources;

/// Lines that are looked at, and how many of them may be taken for a secret.
const LINES: usize = 5_000;
const WRONG: usize = LINES / 200;

#[test]
fn of_five_thousand_plain_lines_nearly_none_is_taken_for_a_secret() {
    let mut lines = Vec::new();
    // What only looks like one: ids, hashes, images.
    for seed in 0..250 {
        lines.push(format!(
            "commit {} tree {}",
            made("0123456789abcdef", 40, seed),
            made("0123456789abcdef", 64, seed)
        ));
        lines.push(uuid::Uuid::from_u128(u128::from(seed) << 64 | 77).to_string());
        lines.push(format!("integrity sha512-{}", STANDARD.encode(made("0123456789abcdef", 64, seed + 1000))));
        let image: Vec<u8> =
            made("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/", 3000, seed).into();
        lines.push(format!("data:image/png;base64,{}", STANDARD.encode(image)));
    }
    let code = ["chorusd", "chorusctl", "proto", "tests"].into_iter().flat_map(sources);
    let code: Vec<String> =
        code.flat_map(|source| source.text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.extend(code.iter().filter(|line| line.len() > 20).step_by(20).take(2_000).cloned());
    let folders = [("claude-code", "jsonl"), ("swe-agent", "json"), ("tau-bench", "json")];
    for (folder, kind) in
        real_data::data_dir().into_iter().flat_map(|all| folders.map(|(name, kind)| (all.join(name), kind)))
    {
        for path in real_data::files_with_extension(&folder, kind) {
            let text = std::fs::read_to_string(path).expect("a transcript").replace("\\n", "\n");
            lines.extend(text.lines().filter(|line| line.len() > 20).take(200).map(str::to_owned));
        }
    }
    lines.extend(code.into_iter().filter(|line| line.len() > 20));
    lines.truncate(LINES);
    assert_eq!(lines.len(), LINES);
    let redactor = Redactor::new(|| [1; 32]);
    let wrong: Vec<_> = lines.iter().filter(|line| redactor.count_secrets(line) > 0).collect();
    assert!(wrong.len() < WRONG, "{} of {LINES}: {wrong:#?}", wrong.len());
}
