//! A model service on loopback, as far as the real agents need one: it streams an answer that tells what it was asked, or
//! fails in the way that the first part of the path names, and keeps what it received.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The running service; it ends with the test's process.
pub(super) struct Stub {
    port: u16,
    received: Arc<Mutex<Vec<Value>>>,
}

impl Stub {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let (port, received) = (listener.local_addr().expect("an address").port(), Arc::default());
        let store = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = Arc::clone(&store);
                std::thread::spawn(move || answer(stream, &store));
            }
        });
        Self { port, received }
    }

    /// Where a scenario is: `ok`, `slow`, `cut`, or the status that it fails with.
    pub(super) fn url(&self, scenario: &str) -> String {
        format!("http://127.0.0.1:{}/{scenario}", self.port)
    }

    /// The bodies of all requests for an answer, in their order.
    pub(super) fn received(&self) -> Vec<Value> {
        self.received.lock().expect("nobody panicked").clone()
    }
}

/// One connection, one request. Who goes away has had enough.
fn answer(stream: TcpStream, store: &Mutex<Vec<Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (path, body) = request(&mut reader)?;
    let mut words = path.split('?').next()?.trim_start_matches('/').splitn(2, '/');
    let (scenario, what) = (words.next()?.to_owned(), words.next().unwrap_or_default().to_owned());
    let mut out = Reply { stream };
    let asked = what.ends_with("responses") || what.ends_with("messages");
    if !asked {
        return out.whole(404, &json!({ "error": { "message": "nothing here", "type": "not_found_error" } }));
    }
    store.lock().ok()?.push(body.clone());
    if let Ok(status) = scenario.parse::<u16>() {
        return out.whole(status, &failure(status));
    }
    if what.ends_with("responses") {
        responses(&mut out, &scenario, &body)
    } else {
        messages(&mut out, &scenario, &body)
    }
}

/// The path and the body of a request.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let (mut line, mut length, mut chunked) = (String::new(), 0, false);
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "transfer-encoding" => chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let mut bytes = Vec::new();
    if chunked {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let size = u64::from_str_radix(line.trim(), 16).ok()?;
            reader.take(size).read_to_end(&mut bytes).ok()?;
            reader.read_line(&mut line).ok()?;
            if size == 0 {
                break;
            }
        }
    } else {
        reader.take(length).read_to_end(&mut bytes).ok()?;
    }
    Some((path, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
}

fn failure(status: u16) -> Value {
    let (kind, code, words) = match status {
        401 => ("authentication_error", "invalid_api_key", "Incorrect API key provided"),
        404 => ("not_found_error", "model_not_found", "The model `m` does not exist or you do not have access to it."),
        429 => ("rate_limit_error", "rate_limit_exceeded", "This request would exceed the rate limit."),
        529 => ("overloaded_error", "server_is_overloaded", "Overloaded"),
        _ => ("api_error", "server_error", "Internal server error"),
    };
    json!({ "type": "error", "error": { "type": kind, "code": code, "message": words } })
}

/// What the agent is told: how many messages it sent, and the end of the last one.
fn told(messages: usize, last: &str) -> String {
    format!("answer to {messages} messages: {}", last.lines().last().unwrap_or_default())
}

/// The text of a message, whose content is a string or a list of parts.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    }
}

fn last_user<'a>(messages: impl Iterator<Item = &'a Value>) -> String {
    messages.filter(|message| message["role"] == "user").last().map(text).unwrap_or_default()
}

fn messages(out: &mut Reply, scenario: &str, body: &Value) -> Option<()> {
    let all = body["messages"].as_array().cloned().unwrap_or_default();
    let words = told(all.len(), &last_user(all.iter()));
    let usage = json!({ "input_tokens": 100, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage });
    if body["stream"] != true {
        let mut whole = message;
        whole["content"] = json!([{ "type": "text", "text": words }]);
        whole["stop_reason"] = json!("end_turn");
        return out.whole(200, &whole);
    }
    out.begin()?;
    out.event("message_start", &json!({ "type": "message_start", "message": message }))?;
    out.event(
        "content_block_start",
        &json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
    )?;
    out.event(
        "content_block_delta",
        &json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": words } }),
    )?;
    out.pause(scenario)?;
    out.event("content_block_stop", &json!({ "type": "content_block_stop", "index": 0 }))?;
    out.event("message_delta", &json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": { "output_tokens": 30 } }))?;
    out.event("message_stop", &json!({ "type": "message_stop" }))
}

fn responses(out: &mut Reply, scenario: &str, body: &Value) -> Option<()> {
    let all = body["input"].as_array().cloned().unwrap_or_default();
    let words = told(all.len(), &last_user(all.iter()));
    let base = |status: &str| json!({ "id": "resp_1", "object": "response", "created_at": 1, "model": body["model"], "status": status, "output": [] });
    let item = |status: &str, content: Value| json!({ "type": "message", "id": "msg_1", "status": status, "role": "assistant", "content": content });
    out.begin()?;
    out.event("response.created", &json!({ "type": "response.created", "response": base("in_progress") }))?;
    out.event(
        "response.output_item.added",
        &json!({ "type": "response.output_item.added", "output_index": 0, "item": item("in_progress", json!([])) }),
    )?;
    out.event("response.output_text.delta", &json!({ "type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": words }))?;
    out.pause(scenario)?;
    let content = json!([{ "type": "output_text", "text": words, "annotations": [] }]);
    out.event(
        "response.output_item.done",
        &json!({ "type": "response.output_item.done", "output_index": 0, "item": item("completed", content) }),
    )?;
    let mut done = base("completed");
    done["usage"] = json!({ "input_tokens": 1000, "input_tokens_details": { "cached_tokens": 100 }, "output_tokens": 20, "output_tokens_details": { "reasoning_tokens": 7 }, "total_tokens": 1020 });
    out.event("response.completed", &json!({ "type": "response.completed", "response": done }))
}

struct Reply {
    stream: TcpStream,
}

impl Reply {
    fn whole(&mut self, status: u16, body: &Value) -> Option<()> {
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all((head + &body).as_bytes()).ok()
    }

    fn begin(&mut self) -> Option<()> {
        let head = b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        self.stream.write_all(head).ok()
    }

    fn event(&mut self, name: &str, data: &Value) -> Option<()> {
        self.stream.write_all(format!("event: {name}\ndata: {data}\n\n").as_bytes()).ok()
    }

    /// In the middle of an answer.
    fn pause(&mut self, scenario: &str) -> Option<()> {
        match scenario {
            "cut" => None,
            "slow" => {
                std::thread::sleep(Duration::from_secs(3));
                Some(())
            }
            _ => Some(()),
        }
    }
}
