//! Tests of whole pages.

use bytes::Bytes;
use chorus_proto::methods::export::ExportFormat;
use serde_json::json;

use crate::export::write;
use crate::file;

#[test]
fn a_page_holds_everything_and_nothing_of_it_is_markup() {
    let evil = "</style></pre><script>alert(1)</script>\u{202e}\"'";
    let whole = json!({"schema": 2, "id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "session_id": "2026-01-02_a-talk",
        "agent_name": evil, "description": evil, "summary": evil, "saved_at": "2026-01-02T03:04:05Z", "tags": [evil],
        "model": evil, "message_count": 3, "working_set": {"decisions": [{"id": "1", "text": evil, "source": "rule"}]},
        "messages": [
            {"id": "1", "role": "user", "content": evil, "timestamp": "2026-01-02T03:00:00Z",
                "author": {"id": "7", "name": evil}, "attachments": [
                    {"name": evil, "media_type": "image/png", "data": "aGk="},
                    {"name": evil, "media_type": "image/svg+xml", "data": "aGk="},
                    {"name": evil, "media_type": "image/png", "data": "\" onerror=x"}]},
            {"id": "2", "role": "assistant", "content": evil, "timestamp": "2026-01-02T03:00:01Z",
                "tool_calls": [{"id": evil, "name": evil, "params": {evil: evil, "n": 1.10}}]},
            {"id": "3", "role": "tool_result", "content": evil, "timestamp": "2026-01-02T03:00:02Z", "name": evil,
                "is_error": true}]});
    let session = file::parse(&Bytes::from(whole.to_string().replace("\"n\":1.1}", "\"n\":1.10}"))).unwrap();
    let mut page = Vec::new();
    write(&mut page, &session, None, ExportFormat::Html).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("<pre>1.10</pre>"), "digits stay");
    assert_eq!(page.matches("<script").count() + page.matches("onerror=x\"").count(), 0, "{page}");
    assert_eq!((page.matches("</style>").count(), page.matches("<img ").count()), (1, 1), "{page}");
    assert_eq!(page.matches('\u{202e}').count(), 0);
    assert_eq!(page.matches("&lt;script&gt;").count(), page.matches("U+202E").count());
    assert_eq!(page.matches("<article ").count(), 3);
    assert!(page.contains("<article class=\"tool_result error\" id=\"m3\">") && page.contains("<details open>"));
}
