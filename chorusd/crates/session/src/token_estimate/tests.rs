use chorus_proto::{NewMessage, Role, ToolCall};
use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::stored_message::StoredMessage;

fn message(value: serde_json::Value) -> Message {
    let new: NewMessage = serde_json::from_value(value).unwrap();
    new.complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH)
}

fn tokens(value: serde_json::Value) -> u64 {
    MessageSize::of_message(&message(value)).tokens()
}

/// Texts, each with the tokens that the vocabularies `o200k_base` and `cl100k_base` of OpenAI have for it.
#[rustfmt::skip]
const COUNTED: [(&str, u64, u64, &str); 16] = [
    ("English", 35, 35, "The invoice has to be paid within thirty days. Please check the address, the amount and the account number before you send the money, and tell me if anything is missing."),
    ("German", 39, 50, "Die Rechnung muss innerhalb von dreißig Tagen bezahlt werden. Bitte prüfe Anschrift, Betrag und Kontonummer, bevor du das Geld überweist, und sage mir, ob etwas fehlt."),
    ("Russian", 49, 79, "Счёт должен быть оплачен в течение тридцати дней. Пожалуйста, проверьте адрес, сумму и номер счёта, прежде чем отправлять деньги, и скажите мне, если чего-то не хватает."),
    ("Greek", 56, 132, "Το τιμολόγιο πρέπει να πληρωθεί μέσα σε τριάντα ημέρες. Παρακαλώ ελέγξτε τη διεύθυνση, το ποσό και τον αριθμό λογαριασμού πριν στείλετε τα χρήματα."),
    ("Arabic", 38, 88, "يجب دفع الفاتورة خلال ثلاثين يوما. يرجى التحقق من العنوان والمبلغ ورقم الحساب قبل إرسال المال، وأخبرني إذا كان هناك شيء ناقص."),
    ("Hebrew", 38, 97, "יש לשלם את החשבונית בתוך שלושים יום. אנא בדוק את הכתובת, את הסכום ואת מספר החשבון לפני שאתה שולח את הכסף."),
    ("Hindi", 43, 146, "चालान का भुगतान तीस दिनों के भीतर किया जाना चाहिए। कृपया पैसे भेजने से पहले पता, राशि और खाता संख्या जाँच लें, और बताएँ कि कुछ छूट तो नहीं गया।"),
    ("Thai", 46, 109, "ต้องชำระใบแจ้งหนี้ภายในสามสิบวัน กรุณาตรวจสอบที่อยู่ จำนวนเงิน และเลขที่บัญชีก่อนส่งเงิน และบอกฉันถ้ามีอะไรขาดหายไป"),
    ("Chinese", 47, 64, "发票必须在三十天内付清。请在汇款之前核对地址、金额和账号，如果缺少什么请告诉我。数据库的备份保存在另一台服务器上，每天晚上自动更新。"),
    ("Japanese", 48, 70, "請求書は三十日以内に支払わなければなりません。送金する前に、住所と金額と口座番号を確認して、足りないものがあれば教えてください。"),
    ("Korean", 39, 64, "청구서는 삼십 일 이내에 지불해야 합니다. 돈을 보내기 전에 주소와 금액과 계좌 번호를 확인하고, 빠진 것이 있으면 알려 주세요."),
    ("Rust", 73, 72, "pub fn parse(json: Bytes) -> serde_json::Result<Self> {\n    let skim: MessageProbe<'_> = serde_json::from_slice(&json)?;\n    let params: u64 = skim.tool_calls.iter().map(|call| count_chars(call.params.get())).sum();\n    Ok(Self { json, role: skim.role, chars: params })\n}\n"),
    ("JSON", 74, 75, r##"{"order_id": "#W2378156", "user_id": "yusuf_rossi_9620", "items": [{"name": "Keyboard", "price": 123.45, "options": {"switch": "clicky", "backlight": "RGB"}}], "status": "delivered", "total": 270.9}"##),
    ("Listing", 67, 67, "-rw-r--r-- 1 root root 1147 Nov 24 18:15 LICENSE\ndrwxr-xr-x 2 root root 4096 Nov 24 18:15 src\n-rw-r--r-- 1 root root 29641 Nov 24 18:15 report.json\n"),
    ("Base64", 98, 105, "QmFzZTY0IGlzIGEgZ3JvdXAgb2YgYmluYXJ5LXRvLXRleHQgZW5jb2Rpbmcgc2NoZW1lcyB0aGF0IHJlcHJlc2VudHMgYmluYXJ5IGRhdGEgaW4gYW4gQVNDSUkgc3RyaW5nIGZvcm1hdA=="),
    ("Emoji", 28, 43, "🎉🚀✅🔥💡🐛📦✨😀😂 done 👍🏽 🎨♻️📝🔧"),
];

#[test]
fn every_script_is_near_what_real_vocabularies_have() {
    for (name, newer, older, text) in COUNTED {
        let (tokens, mean) = (tokens_of_text(text), ((newer * older) as f64).sqrt());
        let error = tokens as f64 / mean - 1.0;
        assert!(error.abs() < 0.3, "{name}: {tokens} tokens, {newer} and {older} counted: {error:+.2}");
    }
}

#[test]
fn a_longer_text_is_never_fewer_tokens() {
    let text = "Fünf Wörter, 五个词, πέντε λέξεις, пять слов, 🎉 — and `codeLine(12345);`\n\t\t".repeat(20);
    let mut before = 0;
    for (end, _) in text.char_indices() {
        let now = tokens_of_text(&text[..end]);
        assert!((before..before + 5).contains(&now), "{before} became {now} at {end}");
        before = now;
    }
    assert_eq!((tokens_of_text(""), tokens_of_text("a")), (0, 1));
    assert!(tokens_of_text(&"-".repeat(400)) < 50 && tokens_of_text(&" ".repeat(400)) < 5);
    assert!(tokens_of_text(&"x".repeat(4000)) < 1010, "letters that repeat are not random ones");
}

#[test]
fn calls_images_and_other_files_count() {
    let said = tokens(json!({"role": "assistant", "content": "I look."}));
    let params = r#"{"path":"src/main.rs"}"#;
    let call = ToolCall { id: "c1".into(), name: "view".into(), params: RawValue::from_string(params.into()).unwrap() };
    let mut calling = message(json!({"role": "assistant", "content": "I look."}));
    calling.tool_calls = vec![call.clone()];
    let one = MessageSize::of_message(&calling).tokens();
    assert!(one >= said + tokens_of_text(params) + CALL_OVERHEAD, "{one} {said}");
    calling.tool_calls.push(call);
    assert!(MessageSize::of_message(&calling).tokens() > one);

    let attached = |kind: &str, data: &str| {
        tokens(json!({"role": "user", "content": "Look!", "attachments": [
            {"name": "a", "media_type": kind, "data": data}]}))
    };
    let plain = tokens(json!({"role": "user", "content": "Look!"}));
    assert_eq!(attached("image/png", ""), plain + IMAGE_TOKENS);
    assert_eq!(attached("image/png", &"A".repeat(100_000)), plain + IMAGE_TOKENS, "an image is no text");
    assert_eq!(attached("application/pdf", &"A".repeat(100_000)), plain + FILE_TOKENS, "it is named only");
}

#[test]
fn what_is_stored_has_the_tokens_of_what_was_said() {
    for value in [
        json!({"role": "user", "content": "plain"}),
        json!({"role": "user", "content": "quoted \"é\" \\ \n \u{1} 語 🎉"}),
        json!({"role": "user", "content": "", "attachments": [{"name": "a", "media_type": "image/png", "data": "AAAA"},
            {"name": "b", "media_type": "text/plain"}, {"name": "c"}]}),
        json!({"role": "assistant", "content": "x", "tool_calls": [
            {"id": "1", "name": "view", "params": {"n": 1.50, "é": "\u{1}"}}, {"id": "2", "name": "b", "params": []}]}),
        json!({"role": "tool_result", "content": "done", "tool_call_id": "1", "name": "view"}),
    ] {
        let said = message(value);
        let due = MessageSize::of_message(&said).tokens();
        let stored = StoredMessage::new(&said).unwrap();
        assert_eq!(stored.tokens(), due, "{said:?}");
        assert_eq!(StoredMessage::parse(stored.json().clone()).unwrap().tokens(), due, "{said:?}");
        assert_eq!(StoredMessage::from_messages(&[said]).unwrap()[0].tokens(), due);
    }
    let odd = br#"{"id":"1","role":"user","content":"abcd","timestamp":"2026-01-02T03:04:05Z","attachments":"none"}"#;
    let odd = StoredMessage::parse(bytes::Bytes::from_static(odd)).unwrap();
    assert_eq!(odd.tokens(), tokens(json!({"role": "user", "content": "abcd"})), "what is no list is no attachment");
    assert_eq!(odd.role(), Role::User);
    let slashed = br#"{"id":"1","role":"user","content":"a\/b\n","timestamp":"2026-01-02T03:04:05Z"}"#;
    let slashed = StoredMessage::parse(bytes::Bytes::from_static(slashed)).unwrap();
    assert_eq!(slashed.tokens(), tokens(json!({"role": "user", "content": "a/b\n"})));
}
