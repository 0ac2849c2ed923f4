//! Every list of the four formats, with its smallest valid element.

use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};

use super::Shape;

const NATIVE: [&str; 19] = [
    r#"{"model":"m","max_tokens":9,"messages":[⟦{"role":"user","content":"a"}⟧]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[⟦{"role":"user","content":[]}⟧]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[⟦{"text":"a"}⟧]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[⟦{"type":"tool_use","id":"c#","name":"n"}⟧]},{"role":"user","content":[⟦{"type":"tool_result","tool_use_id":"c#"}⟧]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[⟦{"type":"thinking","thinking":"a"}⟧]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[⟦{"text":"a"}⟧]}]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[⟦{"text":"a"}⟧]}}]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"search_result","content":[⟦{"text":"a"}⟧]}]}]}"#,
    r#"{"model":"m","max_tokens":9,"system":[⟦{"text":"a"}⟧],"messages":[]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[],"tools":[⟦{"name":"t#"}⟧]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[],"tools":[⟦{"name":"t.#","input_schema":{}}⟧]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":[⟦"a"⟧]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[],"stop_sequences":[⟦"a"⟧]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[],"tools":[{"name":"t","input_schema":{"type":"object","properties":{⟦"p#":{}⟧},"required":[⟦"p#"⟧]}}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[],"output_config":{"format":{"schema":{"type":"object","properties":{⟦"p#":{}⟧},"required":[⟦"p#"⟧],"additionalProperties":false}}}}"#,
    r#"{"model":"m","max_tokens":9,"messages":[],"output_config":{"format":{"schema":{"anyOf":[⟦{"type":"object"}⟧]}}}}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{"a":[⟦0⟧]}}]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[],"unknown":[⟦0⟧]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"system","content":[⟦{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"t#"}}}⟧]}]}"#,
];

const CHAT: [&str; 14] = [
    r#"{"model":"m","messages":[⟦{"role":"user","content":"a"}⟧]}"#,
    r#"{"model":"m","messages":[⟦{"role":"system","content":"a"}⟧]}"#,
    r#"{"model":"m","messages":[⟦{"role":"assistant"}⟧]}"#,
    r#"{"model":"m","messages":[⟦{"role":"tool","tool_call_id":"c#"}⟧]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":[⟦{"text":"a"}⟧]}]}"#,
    r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[⟦{"id":"c#","function":{"name":"n"}}⟧]},⟦{"role":"tool","tool_call_id":"c#","content":"a"}⟧]}"#,
    r#"{"model":"m","messages":[],"tools":[⟦{"function":{"name":"t#"}}⟧]}"#,
    r#"{"model":"m","messages":[],"tools":[⟦{"function":{"name":"t#"}}⟧],"tool_choice":{"allowed_tools":{"tools":[⟦{"function":{"name":"t#"}}⟧]}}}"#,
    r#"{"model":"m","messages":[],"tools":[⟦{"custom":{"name":"t#"}}⟧]}"#,
    r#"{"model":"m","messages":[],"stop":[⟦"a"⟧]}"#,
    r#"{"model":"m","messages":[],"modalities":[⟦"text"⟧]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":[⟦{"url":"https://a/b"}⟧]}]}]}"#,
    r#"{"model":"m","messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":{⟦"p#":{"type":"string"}⟧},"required":[⟦"p#"⟧],"additionalProperties":false}}}}"#,
    r#"{"model":"m","messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"enum":[⟦0⟧]}}}}"#,
];

const RESPONSES: [&str; 18] = [
    r#"{"model":"m","input":[⟦{"role":"user","content":"a"}⟧]}"#,
    r#"{"model":"m","input":[⟦{"type":"x"}⟧]}"#,
    r#"{"model":"m","input":[⟦{"type":"output_text","text":"a"}⟧]}"#,
    r#"{"model":"m","input":[⟦{"type":"input_text","text":"a"}⟧]}"#,
    r#"{"model":"m","input":[{"role":"user","content":[⟦{"text":"a"}⟧]}]}"#,
    r#"{"model":"m","input":[⟦{"type":"reasoning","encrypted_content":"a"}⟧]}"#,
    r#"{"model":"m","input":[⟦{"type":"reasoning","id":"r","encrypted_content":"a"}⟧]}"#,
    r#"{"model":"m","input":[{"type":"reasoning","summary":[⟦{"text":"a"}⟧]}]}"#,
    r#"{"model":"m","input":[⟦{"type":"function_call","call_id":"c#","name":"n"}⟧,⟦{"type":"function_call_output","call_id":"c#"}⟧]}"#,
    r#"{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":[⟦{"text":"a"}⟧]}]}"#,
    r#"{"model":"m","input":[],"tools":[⟦{"name":"t#"}⟧]}"#,
    r#"{"model":"m","input":[],"tools":[⟦{"name":"t#"}⟧],"tool_choice":{"type":"allowed_tools","tools":[⟦{"name":"t#"}⟧]}}"#,
    r#"{"model":"m","input":[],"tools":[{"type":"namespace","name":"s","tools":[⟦{"name":"t#"}⟧]}]}"#,
    r#"{"model":"m","input":[{"type":"additional_tools","tools":[⟦{"name":"t#"}⟧]}]}"#,
    r#"{"model":"m","input":[],"tools":[{"type":"web_search","filters":{"allowed_domains":[⟦"a"⟧]}}]}"#,
    r#"{"model":"m","input":[],"text":{"format":{"type":"json_schema","name":"s","schema":{"type":"object","properties":{⟦"p#":{}⟧},"required":[⟦"p#"⟧],"additionalProperties":false}}}}"#,
    r#"{"model":"m","input":[{"role":"user","content":"a"},{"type":"additional_tools","tools":[⟦{"name":"t#"}⟧]}]}"#,
    r#"{"model":"m","input":[⟦{"type":"configuration_update","text":{"format":{"type":"text"}}}⟧]}"#,
];

const ALT_CLI: [&str; 17] = [
    r#"{"contents":[⟦{"parts":[{"text":"a"}]}⟧]}"#,
    r#"{"contents":[⟦{"text":"a"}⟧]}"#,
    r#"{"contents":[⟦{"parts":[]}⟧]}"#,
    r#"{"contents":[{"parts":[⟦{"text":"a"}⟧]}]}"#,
    r#"{"contents":[{"parts":[⟦{}⟧]}]}"#,
    r#"{"model":"m","request":{"contents":[{"parts":[⟦{"text":"a"}⟧]}]}}"#,
    r#"{"contents":[{"role":"model","parts":[⟦{"functionCall":{"name":"n"}}⟧]},{"parts":[⟦{"functionResponse":{"name":"n"}}⟧]}]}"#,
    r#"{"contents":[{"role":"model","parts":[⟦{"functionCall":{"name":"n#","id":"c#"}}⟧]},{"parts":[⟦{"functionResponse":{"name":"n#","id":"c#"}}⟧]}]}"#,
    r#"{"contents":[{"parts":[{"functionResponse":{"name":"n","parts":[⟦{}⟧]}}]}]}"#,
    r#"{"contents":[{"parts":[{"functionResponse":{"name":"n","response":{⟦"m#":0⟧}}}]}]}"#,
    r#"{"contents":[],"systemInstruction":{"parts":[⟦{"text":"a"}⟧]}}"#,
    r#"{"contents":[],"tools":[{"functionDeclarations":[⟦{"name":"t#"}⟧]}]}"#,
    r#"{"contents":[],"tools":[{"functionDeclarations":[⟦{"name":"t#"}⟧]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":[⟦"t#"⟧]}}}"#,
    r#"{"contents":[],"generationConfig":{"stopSequences":[⟦"a"⟧]}}"#,
    r#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"t","parameters":{"type":"OBJECT","properties":{⟦"p#":{"type":"STRING"}⟧},"required":[⟦"p#"⟧]}}]}]}"#,
    r#"{"contents":[],"generationConfig":{"responseSchema":{"type":"OBJECT","properties":{⟦"p#":{}⟧},"required":[⟦"p#"⟧],"additionalProperties":false}}}"#,
    r#"{"contents":[{"role":"model","parts":[⟦{"toolCall":{}}⟧]}]}"#,
];

const REPLIES: [(WireFormat, &str); 17] = [
    (
        Native,
        r#"{"type":"message","content":[⟦{"type":"text","text":"a"}⟧],"stop_reason":"end_turn"}"#,
    ),
    (Native, r#"{"type":"message","content":[⟦{"type":"x"}⟧]}"#),
    (Native, r#"{"type":"message","content":[⟦{"type":"thinking","thinking":"a"}⟧]}"#),
    (Native, r#"{"type":"message","content":[⟦{"type":"tool_use","id":"c#","name":"n"}⟧]}"#),
    (Chat, r#"{"choices":[{"message":{"content":"a"}},⟦{}⟧]}"#),
    (Chat, r#"{"choices":[{"message":{"content":[⟦{"text":"a"}⟧]}}]}"#),
    (Chat, r#"{"choices":[{"message":{"content":[{"thinking":[⟦{"text":"a"}⟧]}]}}]}"#),
    (Chat, r#"{"choices":[{"message":{"tool_calls":[⟦{"function":{"name":"n"}}⟧]}}]}"#),
    (Responses, r#"{"output":[⟦{"type":"reasoning"}⟧]}"#),
    (Responses, r#"{"output":[⟦{}⟧]}"#),
    (Responses, r#"{"output":[{"type":"message","content":[⟦{"text":"a"}⟧]}]}"#),
    (Responses, r#"{"output":[⟦{"type":"function_call","call_id":"c#","name":"n"}⟧]}"#),
    (AltCli, r#"{"candidates":[{"content":{"parts":[⟦{"text":"a"}⟧]}}]}"#),
    (AltCli, r#"{"candidates":[{"content":{"parts":[⟦{}⟧]}}]}"#),
    (
        AltCli,
        r#"{"candidates":[{"content":{"parts":[⟦{"functionCall":{"name":"n"}}⟧]},"finishReason":"STOP"}]}"#,
    ),
    (AltCli, r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}},⟦{}⟧]}"#),
    (AltCli, r#"{"candidates":[{"content":{"parts":[{"text":"a"},⟦{"toolCall":{}}⟧]}}]}"#),
];

/// Events of streams.
const EVENTS: [(WireFormat, &str); 7] = [
    (
        Native,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[⟦{}⟧]}}"#,
    ),
    (Chat, r#"{"choices":[{"delta":{"content":[⟦{"text":"a"}⟧]}}]}"#),
    (
        Chat,
        r#"{"choices":[{"delta":{"tool_calls":[⟦{"index":#,"id":"c#","function":{"name":"n","arguments":"{}"}}⟧]}}]}"#,
    ),
    (Chat, r#"{"choices":[⟦{"index":1}⟧]}"#),
    (Responses, r#"{"type":"response.completed","response":{"output":[⟦{"type":"reasoning"}⟧]}}"#),
    (
        Responses,
        r#"{"type":"response.output_item.done","item":{"type":"message","content":[⟦{"text":"a"}⟧]}}"#,
    ),
    (AltCli, r#"{"candidates":[{"content":{"parts":[⟦{"functionCall":{"name":"n"}}⟧]}}]}"#),
];

fn shapes<'t>(all: impl IntoIterator<Item = (WireFormat, &'t str)>) -> Vec<Shape> {
    let shape =
        |(format, template): (WireFormat, &str)| Shape { format, template: template.to_owned() };
    all.into_iter().map(shape).collect()
}

pub(super) fn requests() -> Vec<Shape> {
    let of = |format, templates: &'static [&'static str]| {
        shapes(templates.iter().map(move |template| (format, *template)))
    };
    [of(Native, &NATIVE), of(Chat, &CHAT), of(Responses, &RESPONSES), of(AltCli, &ALT_CLI)].concat()
}

pub(super) fn replies() -> Vec<Shape> {
    shapes(REPLIES)
}

pub(super) fn events() -> Vec<Shape> {
    shapes(EVENTS)
}

/// Elements of no list in particular.
pub(super) const ANY: [&str; 9] =
    ["{}", "[]", "null", "\"\"", "0", "{\"\":0}", "[[[[[[]]]]]]", "{\"type\":\"x\"}", "[{}]"];
