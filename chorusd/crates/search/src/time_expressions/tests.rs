use jiff::Zoned;

use super::*;

/// Returns the spans of a text in local time, as asked on a Tuesday.
fn spans(text: &str) -> Vec<String> {
    let now: Zoned = "2026-05-19T15:30:00+02:00[Europe/Berlin]".parse().unwrap();
    let show = |span: TimeSpan| {
        let local = |at: Timestamp| at.to_zoned(now.time_zone().clone()).strftime("%F %R").to_string();
        let (start, end) = (local(span.start), local(span.end));
        format!("{}..{}", start.trim_end_matches(" 00:00"), end.trim_end_matches(" 00:00"))
    };
    find(text, &now).into_iter().map(show).collect()
}

#[test]
fn expressions_of_english() {
    for (text, expected) in [
        ("what did we do today", "2026-05-19..2026-05-20"),
        ("what did I say this morning?", "2026-05-19 05:00..2026-05-19 12:00"),
        ("tonight", "2026-05-19 17:00..2026-05-20"),
        ("Yesterday", "2026-05-18..2026-05-19"),
        ("yesterday's meeting", "2026-05-18..2026-05-19"),
        ("yesterday evening", "2026-05-18 17:00..2026-05-19"),
        ("last night", "2026-05-18 18:00..2026-05-19 06:00"),
        ("the day before yesterday", "2026-05-17..2026-05-18"),
        ("3 days ago", "2026-05-16..2026-05-17"),
        ("a few days ago", "2026-05-16..2026-05-17"),
        ("a couple of days ago", "2026-05-17..2026-05-18"),
        ("two hours ago", "2026-05-19 13:00..2026-05-19 14:00"),
        ("about two weeks ago", "2026-05-02 03:30..2026-05-09 03:30"),
        ("two months ago", "2026-03-04 15:30..2026-04-03 15:30"),
        ("a year ago", "2024-11-19 15:30..2025-11-19 15:30"),
        ("last week", "2026-05-11..2026-05-18"),
        ("this week", "2026-05-18..2026-05-25"),
        ("last month", "2026-04-01..2026-05-01"),
        ("last year", "2025-01-01..2026-01-01"),
        ("in the last three days", "2026-05-16 15:30..2026-05-19 15:31"),
        ("over the past week", "2026-05-12 15:30..2026-05-19 15:31"),
        ("in the last hour", "2026-05-19 14:30..2026-05-19 15:31"),
        ("recently", "2026-05-05 15:30..2026-05-19 15:31"),
        ("on Monday", "2026-05-18..2026-05-19"),
        ("on Tuesday", "2026-05-19..2026-05-20"),
        ("last Tuesday", "2026-05-12..2026-05-13"),
        ("last weekend", "2026-05-16..2026-05-18"),
        ("in May", "2026-05-01..2026-06-01"),
        ("last May", "2025-05-01..2025-06-01"),
        ("in June", "2025-06-01..2025-07-01"),
        ("in May 2025", "2025-05-01..2025-06-01"),
        ("May 2025", "2025-05-01..2025-06-01"),
        ("the Jan 2026 plan", "2026-01-01..2026-02-01"),
        ("on 3 May 2026", "2026-05-03..2026-05-04"),
        ("May 3rd, 2026", "2026-05-03..2026-05-04"),
        ("on the 3rd of May", "2026-05-03..2026-05-04"),
        ("on May 30", "2025-05-30..2025-05-31"),
        ("29 February", "2024-02-29..2024-03-01"),
        ("2026-05-03?", "2026-05-03..2026-05-04"),
        ("in 2026-04", "2026-04-01..2026-05-01"),
        ("Monday, 4 May 2026", "2026-05-04..2026-05-05"),
        ("in 2025", "2025-01-01..2026-01-01"),
    ] {
        assert_eq!(spans(text), [expected], "{text}");
    }
}

#[test]
fn expressions_of_german() {
    for (text, expected) in [
        ("was war gestern Abend", "2026-05-18 17:00..2026-05-19"),
        ("heute Morgen", "2026-05-19 05:00..2026-05-19 12:00"),
        ("vorgestern", "2026-05-17..2026-05-18"),
        ("vor zwei Monaten", "2026-03-04 15:30..2026-04-03 15:30"),
        ("vor ein paar Tagen", "2026-05-16..2026-05-17"),
        ("letzte Woche", "2026-05-11..2026-05-18"),
        ("letzten Montag", "2026-05-18..2026-05-19"),
        ("die letzten drei Tage", "2026-05-16 15:30..2026-05-19 15:31"),
        ("im März", "2026-03-01..2026-04-01"),
        ("am 3. Mai 2026", "2026-05-03..2026-05-04"),
        ("im Jahr 2025", "2025-01-01..2026-01-01"),
    ] {
        assert_eq!(spans(text), [expected], "{text}");
    }
}

#[test]
fn words_that_name_no_time() {
    for text in [
        "I may go",
        "what did April say",
        "march on",
        "why does error 2025 appear",
        "how long is a week",
        "version 3 of the day planner",
        "\"last week\"",
        "-yesterday",
        "9999999999 years ago",
        "one may ask",
        "31 February",
        "vor allem",
        "",
    ] {
        assert!(spans(text).is_empty(), "{text}: {:?}", spans(text));
    }
}

#[test]
fn several_expressions_are_found_once_each() {
    assert_eq!(spans("in May or in April, in May"), ["2026-05-01..2026-06-01", "2026-04-01..2026-05-01"]);
}

#[test]
fn days_have_the_length_of_the_time_zone() {
    let now: Zoned = "2026-03-30T12:00:00+02:00[Europe/Berlin]".parse().unwrap();
    let span = find("yesterday", &now)[0];
    assert_eq!(span.end.as_second() - span.start.as_second(), 23 * 3600);
}

#[test]
fn closeness_falls_with_the_distance() {
    let now: Zoned = "2026-05-19T15:30:00+00:00[UTC]".parse().unwrap();
    let span = find("yesterday", &now)[0];
    let at = |text: &str| span.closeness(text.parse::<Timestamp>().unwrap().as_microsecond());
    assert_eq!(at("2026-05-18T12:00:00Z"), 1.0);
    assert_eq!(at("2026-05-17T12:00:00Z"), 0.5);
    assert!((at("2026-05-19T12:00:00Z") - 0.5).abs() < 1e-6);
    assert!(at("2026-05-01T12:00:00Z") < 1e-6);
    assert!(span.closeness(i64::MIN) == 0.0 && span.closeness(i64::MAX) == 0.0);
    let month = find("in April", &now)[0];
    assert!(month.closeness(at_micros("2026-05-04T12:00:00Z")) > 0.5, "longer spans are less exact");
}

fn at_micros(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}
