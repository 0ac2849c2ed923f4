//! The requirements of each client for a stream: complete, in order, and ended by its terminator
//! only if the reply was complete.

use serde_json::Value;
use tollgate::domain::format::WireFormat;

use super::checks::{Fault, response};

/// One event of a converted stream.
pub struct Event {
    pub name: Option<String>,
    pub data: String,
}

impl Event {
    fn json(&self) -> Result<Value, Fault> {
        serde_json::from_str(&self.data).map_err(|error| format!("{error}: {}", self.data))
    }
}

/// Splits a converted stream; each event has one data line.
pub fn events(bytes: &[u8]) -> Result<Vec<Event>, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?.replace("\r\n", "\n");
    let mut all = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.is_empty()) {
        let mut event = Event { name: None, data: String::new() };
        for line in block.lines() {
            match (line.strip_prefix("event: "), line.strip_prefix("data: ")) {
                (Some(name), _) => event.name = Some(name.to_owned()),
                (_, Some(data)) if event.data.is_empty() => data.clone_into(&mut event.data),
                _ => return Err(format!("a stray line: {line}")),
            }
        }
        all.push(event);
    }
    Ok(all)
}

/// Whether the stream ends with its format's success terminator.
pub fn is_complete(format: WireFormat, bytes: &[u8]) -> bool {
    let all = events(bytes).unwrap();
    let Some(last) = all.last() else { return false };
    match format {
        WireFormat::Native => last.name.as_deref() == Some("message_stop"),
        WireFormat::Chat => last.data == "[DONE]",
        WireFormat::Responses => {
            matches!(last.name.as_deref(), Some("response.completed" | "response.incomplete"))
        }
        WireFormat::AltCli => last.data.contains("\"finishReason\""),
    }
}

pub fn stream(format: WireFormat, bytes: &[u8], complete: bool) -> Result<(), Fault> {
    if is_complete(format, bytes) != complete {
        return Err("it ends as it must not".to_owned());
    }
    let all = events(bytes)?;
    match format {
        WireFormat::Native => native(&all, complete),
        WireFormat::Responses => responses(&all, complete),
        WireFormat::Chat => chat(&all),
        WireFormat::AltCli => all.iter().try_for_each(|event| event.json().map(|_| ())),
    }
}

fn native(all: &[Event], complete: bool) -> Result<(), Fault> {
    let mut open: Option<u64> = None;
    let mut next = 0;
    for (position, event) in all.iter().enumerate() {
        let data = event.json()?;
        let kind = data["type"].as_str().unwrap_or_default();
        if event.name.as_deref() != Some(kind) {
            return Err(format!("event {:?} holds {kind}", event.name));
        }
        let index = data["index"].as_u64();
        let fits = match kind {
            "message_start" => position == 0,
            "content_block_start" => open.is_none() && index == Some(next),
            "content_block_delta" | "content_block_stop" => open.is_some() && index == open,
            "message_delta" => open.is_none() && data["delta"]["stop_reason"].is_string(),
            "message_stop" => open.is_none() && position + 1 == all.len(),
            "error" => !complete && position + 1 == all.len(),
            _ => false,
        };
        if !fits {
            return Err(format!("{kind} is out of order at {position}"));
        }
        match kind {
            "content_block_start" => open = index,
            "content_block_stop" => {
                open = None;
                next += 1;
            }
            _ => {}
        }
    }
    Ok(())
}

fn chat(all: &[Event]) -> Result<(), Fault> {
    let mut finished = false;
    for event in all.iter().filter(|event| event.data != "[DONE]") {
        let data = event.json()?;
        if data.get("error").is_some() {
            continue;
        }
        if data["object"] != "chat.completion.chunk"
            || !data["id"].is_string()
            || !data["created"].is_number()
        {
            return Err(format!("not a chunk: {data}"));
        }
        let choice = &data["choices"][0];
        if finished && !choice.is_null() {
            return Err("a choice after the last".to_owned());
        }
        finished |= choice["finish_reason"].is_string();
    }
    Ok(())
}

fn responses(all: &[Event], complete: bool) -> Result<(), Fault> {
    let mut items: Vec<Value> = Vec::new();
    let mut added = 0;
    for (position, event) in all.iter().enumerate() {
        let data = event.json()?;
        let kind = data["type"].as_str().unwrap_or_default();
        if event.name.as_deref() != Some(kind) || data["sequence_number"] != position as u64 {
            return Err(format!("{kind} has number {} at {position}", data["sequence_number"]));
        }
        match kind {
            "response.created" | "response.in_progress" => response(&data["response"], false)?,
            "response.output_item.added" => {
                added += 1;
                if data["output_index"] != items.len() as u64 {
                    return Err("an item out of order".to_owned());
                }
            }
            "response.output_item.done" => items.push(data["item"].clone()),
            "response.completed" | "response.incomplete" => {
                response(&data["response"], true)?;
                if data["response"]["output"] != Value::Array(items.clone()) {
                    return Err("the last event does not repeat the items".to_owned());
                }
            }
            "error" | "response.failed" => {}
            _ => {
                if !data["item_id"].is_string() || data["output_index"] != items.len() as u64 {
                    return Err(format!("{kind} belongs to no open item"));
                }
            }
        }
    }
    if complete && added != items.len() { Err("an item was not done".to_owned()) } else { Ok(()) }
}
