use super::*;

/// Error responses of real servers: status, body, class, and where it was seen.
const REAL: [(u16, &str, ErrorClass, &str); 56] = [
    // The conversation is too long.
    (
        400,
        r#"{"error":{"message":"litellm.BadRequestError: AnthropicException - b'{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000, decrease input length or `max_tokens` and try again\"}}'. Received Model Group=anthropic/claude-sonnet-4-20250514\nAvailable Model Group Fallbacks=None","type":null,"param":null,"code":"400"}}"#,
        ErrorClass::ContextTooLong,
        "litellm: BrokkAi/brokk-app#540",
    ),
    (
        400,
        r#"{"error":{"message":"litellm.ContextWindowExceededError: AnthropicError - {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 209303 tokens > 200000 maximum\"}}","type":null,"param":null,"code":"400"}}"#,
        ErrorClass::ContextTooLong,
        "litellm: OpenHands/OpenHands#5350",
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210094 tokens > 200000 maximum"}}"#,
        ErrorClass::ContextTooLong,
        "Anthropic: crewAIInc/crewAI#4619",
    ),
    (
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ErrorClass::ContextTooLong,
        "Anthropic: docs.anthropic.com/en/api/errors",
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ErrorClass::ContextTooLong,
        "OpenAI: chathub-dev/chathub#126",
    ),
    (
        400,
        r#"{"object":"error","message":"This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}"#,
        ErrorClass::ContextTooLong,
        "vLLM: ogx-ai/ogx#4534",
    ),
    (
        400,
        r#"{"object":"error","message":"max_tokens must be at least 1, got -186.","type":"BadRequestError","param":null,"code":400}"#,
        ErrorClass::ContextTooLong,
        "vLLM: vllm-project/vllm#4667",
    ),
    (
        500,
        r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#,
        ErrorClass::ContextTooLong,
        "llama.cpp: ggml-org/llama.cpp#15780",
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"request (131168 tokens) exceeds the available context size (131072 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":131168,"n_ctx":131072}}"#,
        ErrorClass::ContextTooLong,
        "llama.cpp: langchain-ai/openwiki#648",
    ),
    (
        400,
        r#"{"error":{"message":"Prompt tokens (9000) exceeds context size (8192)","type":"context_exceeded","n_prompt_tokens":9000,"n_ctx":8192}}"#,
        ErrorClass::ContextTooLong,
        "antirez/ds4#150",
    ),
    (
        400,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."}"#,
        ErrorClass::ContextTooLong,
        "LM Studio: Gitlawb/openclaude#353",
    ),
    (
        400,
        r#"{"error":"Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input."}"#,
        ErrorClass::ContextTooLong,
        "LM Studio: lmstudio-ai/lmstudio-bug-tracker#237",
    ),
    (
        400,
        r#"{"error":"Context size has been exceeded."}"#,
        ErrorClass::ContextTooLong,
        "LM Studio: lmstudio-ai/lmstudio-bug-tracker#2339",
    ),
    (
        400,
        r#"{"error":"the input length exceeds the context length"}"#,
        ErrorClass::ContextTooLong,
        "Ollama: nano-step/nano-brain#208",
    ),
    (
        400,
        r#"{"error":{"message":"prompt too long; exceeded max context length by 5000 tokens","type":"invalid_request_error","param":null,"code":null}}"#,
        ErrorClass::ContextTooLong,
        "Ollama: badlogic/pi-mono packages/ai/src/utils/overflow.ts",
    ),
    (
        400,
        r#"{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 141607 tokens (10535 of text input, 131072 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":"Chutes"}}}"#,
        ErrorClass::ContextTooLong,
        "OpenRouter: Aider-AI/aider#3721",
    ),
    (
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Your input exceeds the context window of this model.\"}}","provider_name":"X"}}}"#,
        ErrorClass::ContextTooLong,
        "OpenRouter: openrouter.ai/docs/api-reference/errors, `metadata.raw`",
    ),
    (
        400,
        r#"{"error":{"message":"Error from provider: {\"error\":{\"message\":\"This endpoint's maximum context length is 65536 tokens. However, you requested about 92208 tokens\",\"code\":400,\"metadata\":{\"provider_name\":null}}}","type":"api_error","code":"provider_response_error"}}"#,
        ErrorClass::ContextTooLong,
        "a router before OpenRouter: musistudio/claude-code-router#252",
    ),
    (
        400,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ErrorClass::ContextTooLong,
        "Groq: badlogic/pi-mono packages/ai/src/utils/overflow.ts",
    ),
    (
        413,
        r#"{"error":{"message":"Request too large for model `llama-3.3-70b-versatile` in organization `org_01jp8byqwpfx9sp1m0dbhb6a1e` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 14810, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ErrorClass::ContextTooLong,
        "Groq, more than a whole minute allows: ITSpecialist111/ai_automation_suggester#61, HunorLaczko/ha-groq-cloud-api#27",
    ),
    (
        429,
        r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        ErrorClass::ContextTooLong,
        "OpenAI, more than a whole minute allows: vanna-ai/vanna-flask#11",
    ),
    (
        400,
        r#"{"object":"error","message":"Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}"#,
        ErrorClass::ContextTooLong,
        "Mistral: badlogic/pi-mono packages/ai/src/utils/overflow.ts",
    ),
    (
        400,
        r#"[{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","errors":[{"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","domain":"global","reason":"badRequest"}],"status":"INVALID_ARGUMENT"}}]"#,
        ErrorClass::ContextTooLong,
        "Gemini: google-gemini/gemini-cli#6678",
    ),
    (
        400,
        r#"{"error":{"message":"{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).\",\n    \"status\": \"INVALID_ARGUMENT\"\n  }\n}\n","code":400,"status":"Bad Request"}}"#,
        ErrorClass::ContextTooLong,
        "Gemini: google-gemini/gemini-cli#4231",
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 65536 tokens. However, you requested 72814 tokens (68718 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
        ErrorClass::ContextTooLong,
        "DeepSeek: FoundationAgents/OpenManus#62",
    ),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", ErrorClass::ContextTooLong, "nginx"),
    // The reply is too long.
    (
        400,
        r#"{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 16384 tokens and your request has 3130 input tokens (32000 > 16384 - 3130).","type":"BadRequestError","param":null,"code":400}"#,
        ErrorClass::AnswerTooLong,
        "vLLM: stepfun-ai/Step-Audio-R1#3",
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 10000 > 4096, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20240620"}}"#,
        ErrorClass::AnswerTooLong,
        "Anthropic: ChatGPTNextWeb/NextChat#4964",
    ),
    (
        400,
        r#"{"error":{"message":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"max_tokens: 21333 > 4096, which is the maximum allowed number of output tokens for claude-3-opus-20240229\"},\"request_id\":\"req_011CUwZTS7TYAH8UyTro83sP\"}. Received Model Group=claude-haiku-4-5-20251001\nAvailable Model Group Fallbacks=None","type":"None","param":"None","code":"400"}}"#,
        ErrorClass::AnswerTooLong,
        "litellm: anthropics/claude-code#11302",
    ),
    (
        400,
        r#"{"error":{"message":"`max_tokens` must be less than or equal to `40960`, the maximum value for `max_tokens` is less than the `context_window` for this model","type":"invalid_request_error","param":"max_tokens"}}"#,
        ErrorClass::AnswerTooLong,
        "Groq: RooCodeInc/Roo-Code#5136",
    ),
    (
        400,
        r#"{"error":{"code":"InvalidParameter","message":"The parameter max_tokens specified in the request is not valid: integer above maximum value, expected a value <= 32768, but got 64000 instead.","param":"max_tokens","type":"BadRequest"}}"#,
        ErrorClass::AnswerTooLong,
        "Volcengine: yiliqi78/TOKENICODE#3",
    ),
    (
        400,
        r#"{"error":{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 393216]","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
        ErrorClass::AnswerTooLong,
        "DeepSeek: dataelement/Clawith#571",
    ),
    // Too many requests, or no credit for more.
    (
        429,
        r#"{"error":{"message":"Rate limit reached for model `llama-3.1-8b-instant` in organization `org_01j5b4pz9jff492fq686vypsx6` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ErrorClass::RateLimited,
        "Groq: elizaOS/eliza#4040",
    ),
    (
        429,
        r#"{"error":{"message":"litellm.RateLimitError: GroqException - Rate limit reached, Limit 6000, Used 5034, Requested 1443. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing","type":null,"param":null,"code":"429"}}"#,
        ErrorClass::RateLimited,
        "litellm before Groq: the same",
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute"}}"#,
        ErrorClass::RateLimited,
        "Anthropic: zed-industries/zed#28688",
    ),
    (
        429,
        r#"{"message":"Too many tokens, please wait before trying again."}"#,
        ErrorClass::RateLimited,
        "Bedrock: badlogic/pi-mono packages/ai/src/utils/overflow.ts",
    ),
    (
        429,
        r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\nPlease retry in 18.288472937s.","status":"RESOURCE_EXHAUSTED"}}]"#,
        ErrorClass::RateLimited,
        "Gemini: ai.google.dev/gemini-api/docs/rate-limits",
    ),
    (
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        ErrorClass::SpendCap,
        "OpenAI: platform.openai.com/docs/guides/error-codes",
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
        ErrorClass::SpendCap,
        "Anthropic: docs.anthropic.com/en/api/errors",
    ),
    (402, r#"{"error":{"code":402,"message":"Insufficient credits"}}"#, ErrorClass::SpendCap, "OpenRouter: its docs"),
    // Other faults of a request.
    (
        400,
        r#"{"error":{"message":"Invalid 'messages[10].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 51 instead.","type":"invalid_request_error","param":"messages[10].tool_calls[0].id","code":"string_above_max_length"}}"#,
        ErrorClass::BadRequest,
        "OpenAI: vercel/ai#8132",
    ),
    (
        400,
        r#"{"object":"error","message":"Tool call id was call_0fypS1hVX but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_function_call","param":null,"code":"3280"}"#,
        ErrorClass::BadRequest,
        "Mistral: editor-code-assistant/eca#233",
    ),
    (
        400,
        r#"{"error":{"message":"Expecting ',' delimiter: line 1 column 54 (char 53)","type":"BadRequestError","param":null,"code":400}}"#,
        ErrorClass::BadRequest,
        "vLLM: vllm-project/vllm#43995",
    ),
    (
        400,
        r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required"}]}"#,
        ErrorClass::BadRequest,
        "FastAPI, as vLLM and others have it",
    ),
    (
        404,
        r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#,
        ErrorClass::NoImages,
        "OpenRouter: NousResearch/hermes-agent#23411",
    ),
    (404, r#"{"error":"model \"x\" not found, try pulling it first"}"#, ErrorClass::NotFound, "Ollama"),
    (
        401,
        r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}"#,
        ErrorClass::Auth,
        "OpenAI",
    ),
    (
        403,
        r#"{"type":"error","error":{"type":"permission_error","message":"not allowed"}}"#,
        ErrorClass::Denied,
        "Anthropic: docs.anthropic.com/en/api/errors",
    ),
    // Transient failures.
    (
        503,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
        ErrorClass::Loading,
        "llama.cpp: mostlygeek/llama-swap#146",
    ),
    (
        503,
        r#"{"error":"Model bigscience/bloom is currently loading","estimated_time":20.0}"#,
        ErrorClass::Loading,
        "Hugging Face: huggingface.co/docs/api-inference",
    ),
    (
        503,
        r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#,
        ErrorClass::Overloaded,
        "Ollama",
    ),
    (
        500,
        r#"{"error":{"message":"llama-server process has terminated: exit status 1: error loading model: llama_model_loader: failed to load model","type":"api_error","param":null,"code":null}}"#,
        ErrorClass::Server,
        "Ollama: continuedev/continue#12713",
    ),
    (
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ErrorClass::Overloaded,
        "Anthropic: docs.anthropic.com/en/api/errors",
    ),
    (
        500,
        r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#,
        ErrorClass::Server,
        "Anthropic: docs.anthropic.com/en/api/errors",
    ),
    (502, r#"{"error":{"code":502,"message":"upstream"}}"#, ErrorClass::Server, "OpenRouter: its docs"),
    (502, "<html>Bad gateway</html>", ErrorClass::Server, "nginx"),
];

fn fault(body: &str) -> ProviderError {
    ProviderError::parse(body.as_bytes()).unwrap_or_else(|| ProviderError::from_value(body.into()))
}

#[test]
fn real_refusals_have_their_class() {
    for (status, body, due, source) in REAL {
        let fault = fault(body);
        assert_eq!(fault.class(Some(status)), due, "{source}: {status} {body}");
        assert!(!fault.message.is_empty(), "{source}");
    }
}

/// An error in the middle of a stream, where no status helps, as in LM Studio (lmstudio-ai/lmstudio-bug-tracker#2322).
#[test]
fn what_is_too_long_is_known_without_a_status() {
    for (status, body, due, source) in REAL {
        if due == ErrorClass::ContextTooLong && status == 400 {
            assert_eq!(fault(body).class(None), due, "{source}");
        }
    }
    let of = |error: Value| ProviderError::from_value(error).class(None);
    assert_eq!(of(serde_json::json!({"code": 429, "message": "busy"})), ErrorClass::RateLimited);
    assert_eq!(of(serde_json::json!({"type": "overloaded_error", "message": "Overloaded"})), ErrorClass::Overloaded);
    assert_eq!(of(serde_json::json!({"type": "invalid_request_error", "message": "bad"})), ErrorClass::BadRequest);
    assert_eq!(of(serde_json::json!({"type": null, "message": "oops"})), ErrorClass::Server);
}

#[test]
fn an_answer_is_no_refusal() {
    for body in [
        r#"{"id":"1","choices":[{"message":{"content":"error"}}],"error":null}"#,
        r#"{"id":"msg","type":"message","content":[],"stop_reason":"end_turn"}"#,
        "[]",
        "no JSON",
    ] {
        assert_eq!(ProviderError::parse(body.as_bytes()), None, "{body}");
    }
}
