//! Texts as attachments: a model is shown what is in them.

use std::fs;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use super::{MODELS, start_with_model};

#[test]
fn a_text_that_is_attached_is_shown_and_counts_in_the_window() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let table = "country,rows\nAT,12\nDE,30\n".repeat(100);
        fs::write(fixture.home.user_home.join("rows.csv"), &table).expect("a file");
        fixture.reply("42 of each.");
        chorusctl(&fixture.home, ["send", "How many?", "--attach", "rows.csv"]).expect_success();
        let sent = fixture.models().requests().pop().expect("a request").text;
        let shown = format!("{}\\n[end of rows.csv]", table.trim_end().replace('\n', "\\n"));
        assert!(sent.contains("[attached: rows.csv, text/csv, ") && sent.contains(&shown), "{model}: {sent}");
        let mut client = fixture.client();
        assert!(client.messages("a")[0].attachments[0].data.is_some(), "the record has it as it came");
        let meter = client.agent_status("a").context.and_then(|context| context.meter).expect("a meter");
        fixture.reply("Yes.");
        chorusctl(&fixture.home, ["send", "Sure?"]).expect_success();
        let tokens = (fixture.models().requests().pop().expect("a request").text.len() / 4) as u64;
        assert!(meter.used.abs_diff(tokens) < tokens / 5, "{model}: {} and {tokens}", meter.used);
    }
}
