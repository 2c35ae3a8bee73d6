//! Tests of aider's history.

use chorus_proto::methods::import::ImportFormat::{Aider, Auto};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::super::test_support::{RecordingSink, import_as};

/// Builds lines in which ` $` at the end is the end of a prompt or notice.
fn history(text: &str) -> String {
    text.replace(" $\n", "  \n")
}

const FIRST: &str = "
# aider chat started at 2026-11-26 21:23:49

> /usr/bin/aider --model p/m --message Fix it
and this $
> Aider v0.86.2 $
> Model: p/m with diff edit format $
> Added a.py to the chat. $

#### Fix it $
####  $
#### and this $

#### A heading

I did:

```
> quoted $
#### not a prompt $
```

> a quotation

Done.

> Tokens: 2.4k sent, 1.1k cache hit, 350 received. Cost: $0.0012 message, $0.0034 session. $
> Applied edit to a.py $
";

const SECOND: &str = "
# aider chat started at 2026-11-26 21:24:04

> Aider v0.86.2 $
> Main model: p/n with architect edit format $

#### /add b.py $

> Added b.py to the chat. $

#### Thanks $
";

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, history(text)).unwrap();
    assert_eq!(found.format, Aider);
    found
}

fn local(time: &str) -> Option<Timestamp> {
    let time: DateTime = time.parse().unwrap();
    Some(time.to_zoned(TimeZone::system()).unwrap().timestamp())
}

#[test]
fn every_run_is_a_session() {
    let found = read(&format!("{FIRST}{SECOND}\n# aider chat started at 2026-11-26 21:25:00\n\n> Aider v0.86.2 $\n"));
    let [first, second] = &found.sessions[..] else { panic!("{} sessions", found.sessions.len()) };
    let reply =
        "assistant: #### A heading\n\nI did:\n\n```\n> quoted  \n#### not a prompt  \n```\n\n> a quotation\n\nDone.";
    assert_eq!(first.role_texts(), ["user: Fix it\n\nand this", reply]);
    let usage = first.messages[1].usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(2400), Some(350), Some(1100)));
    assert_eq!(usage.cost_usd, Some(0.0012));
    assert!(first.messages[1].provider.as_ref().unwrap().get().contains("Applied edit"));
    assert_eq!((first.about.model.as_deref(), first.about.started_at), (Some("p/m"), local("2026-11-26T21:23:49")));
    assert_eq!(second.role_texts(), ["user: /add b.py", "user: Thanks"]);
    assert_eq!(second.about.model.as_deref(), Some("p/n"));
    assert!(found.skipped.is_empty());
}

#[test]
fn a_run_keeps_its_id_when_the_history_grows_or_loses_its_beginning() {
    let ids = |text: &str| -> Vec<_> {
        read(text).sessions.into_iter().map(|session| (session.about.id, session.about.conversation.unwrap())).collect()
    };
    let first = &ids(FIRST)[0];
    assert_eq!(first, &ids(&format!("{FIRST}\n#### More $\n"))[0]);
    let second = ids(&format!("{FIRST}{SECOND}"))[1].clone();
    assert_eq!(ids(SECOND), std::slice::from_ref(&second));
    assert!(second.1.starts_with("20261126T212404-"), "{}", second.1);
    let twice = ids(&format!("{SECOND}{SECOND}"));
    assert_eq!((&twice[0], twice[1].1.as_str()), (&second, &*format!("{}-2", second.1)));
}

#[test]
fn a_run_without_a_prompt_is_nothing_to_import() {
    assert!(import_as(Auto, "# aider chat started at 2026-11-26 21:24:04\n\n> Aider v0.86.2  \nwords\n").is_err());
    assert!(import_as(Aider, "#### Hello  \n").is_err());
}
