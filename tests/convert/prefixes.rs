//! The part of a converted request that models and prompt caches bind a session to: tools,
//! instructions and messages, as bytes.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::convert::{self, RequestOptions};

/// Its members, as a provider receives them.
#[derive(Deserialize, Debug)]
pub struct Prefix {
    #[serde(default)]
    tools: Vec<Box<RawValue>>,
    #[serde(alias = "systemInstruction", alias = "instructions")]
    system: Option<Box<RawValue>>,
    #[serde(alias = "contents", alias = "input")]
    messages: Vec<Box<RawValue>>,
}

impl Prefix {
    /// Whether the request begins with all of the earlier one. Claude's tools stay the same; other
    /// services get new ones behind the others.
    pub fn goes_on_from(&self, earlier: &Self, to: WireFormat) -> bool {
        let text =
            |value: &Option<Box<RawValue>>| value.as_ref().map(|value| value.get().to_owned());
        let begins = |all: &[Box<RawValue>], first: &[Box<RawValue>]| {
            all.len() >= first.len() && all.iter().zip(first).all(|(a, b)| a.get() == b.get())
        };
        let tools = match to {
            Native => {
                self.tools.len() == earlier.tools.len() && begins(&self.tools, &earlier.tools)
            }
            Chat | Responses => begins(&self.tools, &earlier.tools),
            // One element with all declarations.
            AltCli => true,
        };
        tools
            && text(&self.system) == text(&earlier.system)
            && begins(&self.messages, &earlier.messages)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for value in self.tools.iter().chain(&self.system).chain(&self.messages) {
            writeln!(f, "{value}")?;
        }
        Ok(())
    }
}

/// The client's request, converted for a model of today.
pub fn converted(from: WireFormat, to: WireFormat, body: &Value) -> Prefix {
    let model = match to {
        Native => "claude-opus-5-5",
        Responses | Chat => "gpt-6",
        AltCli => "gemini-3-pro",
    };
    let options = RequestOptions::new(model, true);
    let sent = convert::request(from, to, body.to_string().as_bytes(), &options).unwrap();
    serde_json::from_slice(&sent.body).unwrap()
}

/// The number of messages of a client's request.
pub fn messages(from: WireFormat, body: &Value) -> usize {
    body[list_of(from)].as_array().unwrap().len()
}

const fn list_of(from: WireFormat) -> &'static str {
    match from {
        Native | Chat => "messages",
        Responses => "input",
        AltCli => "contents",
    }
}

/// Adds a tool in the middle of the conversation, where the client's format can: before the first
/// message of the user that follows this many messages.
pub fn add_tool(from: WireFormat, body: &mut Value, after: usize) {
    let item = match from {
        Native => {
            let definition = json!({"name": "added", "input_schema": {"type": "object"}});
            let tool = json!({"type": "tool_definition", "definition": definition});
            let block = json!({"type": "tool_addition", "tool": tool});
            json!({"role": "system", "content": [block]})
        }
        Responses => {
            let tool = json!({"type": "function", "name": "added", "parameters": {}});
            json!({"type": "additional_tools", "tools": [tool]})
        }
        Chat | AltCli => return,
    };
    let list = body[list_of(from)].as_array_mut().unwrap();
    let is_users = |message: &Value| {
        message["role"] == "user" && message["content"][0]["type"] != "tool_result"
    };
    let later = list.iter().enumerate().skip(after);
    if let Some(at) = later.filter(|(_, message)| is_users(message)).map(|(at, _)| at).next() {
        list.insert(at, item);
    }
}

#[test]
fn claude_gets_new_tools_where_they_are_added() {
    let body = json!({
        "model": "m",
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ho"}]},
            {"type": "additional_tools", "tools": [{"type": "function", "name": "b"}]},
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": "go on"},
        ],
        "tools": [{"type": "function", "name": "a", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "b"}]},
    });
    let bytes = body.to_string().into_bytes();
    let newest =
        convert::request(Responses, Native, &bytes, &RequestOptions::new("claude-opus-5-5", true))
            .unwrap();
    let sent: Value = serde_json::from_slice(&newest.body).unwrap();
    assert_eq!(sent["tools"].as_array().unwrap().len(), 1, "{sent}");
    assert_eq!(sent["messages"][2]["role"], "system");
    let added = &sent["messages"][2]["content"][0];
    assert_eq!(added["type"], "tool_addition", "{sent}");
    assert_eq!(added["tool"]["definition"]["name"], "b", "{sent}");
    assert_eq!(sent["messages"][2]["content"][1]["text"], "be brief", "{sent}");
    assert_eq!(sent["thinking"]["block_binding"]["prefix_mismatch_behavior"], "drop_block");
    assert_eq!(newest.betas.len(), 3, "{:?}", newest.betas);
    // An older one takes neither.
    let older =
        convert::request(Responses, Native, &bytes, &RequestOptions::new("claude-opus-4-7", true))
            .unwrap();
    let sent: Value = serde_json::from_slice(&older.body).unwrap();
    assert_eq!(sent["tools"][0]["name"], "b", "only what is allowed: {sent}");
    assert_eq!(sent["system"], "be brief");
    assert!(older.betas.is_empty() && sent.get("thinking").is_none(), "{sent}");
}
