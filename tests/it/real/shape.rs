//! The shape of what an agent prints: which kinds of events, and in each which keys with which kinds of values.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// For each kind of event, the paths of its values with the kinds that were seen there.
pub(super) type Shape = BTreeMap<String, BTreeMap<String, BTreeSet<&'static str>>>;

/// Keys whose own keys are data, not words of the format.
const OPEN: &[&str] = &["modelUsage", "model_usage_since_last_result"];

pub(super) fn of(output: &str) -> Shape {
    let mut shape = Shape::new();
    for event in output.lines().map(|line| serde_json::from_str::<Value>(line).expect("every line is an event")) {
        let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = [name(&event["type"]), name(&event["subtype"]), name(&event["item"]["type"])].join("/");
        put(shape.entry(kind).or_default(), "", &event);
    }
    shape
}

fn put(paths: &mut BTreeMap<String, BTreeSet<&'static str>>, path: &str, value: &Value) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    paths.entry(path.to_owned()).or_default().insert(kind);
    match value {
        Value::Array(values) => values.iter().for_each(|value| put(paths, &format!("{path}[]"), value)),
        Value::Object(fields) if !OPEN.iter().any(|open| path.ends_with(open)) => {
            fields.iter().for_each(|(key, value)| put(paths, &format!("{path}.{key}"), value));
        }
        _ => {}
    }
}

/// What of a played output a real one has not.
pub(super) fn invented(played: &Shape, real: &Shape) -> Vec<String> {
    let mut invented = Vec::new();
    for (kind, paths) in played {
        let Some(known) = real.get(kind) else {
            invented.push(format!("{kind}: no such event"));
            continue;
        };
        for (path, kinds) in paths {
            match known.get(path) {
                Some(found) if kinds.is_subset(found) => {}
                found => invented.push(format!("{kind}: {path} is {kinds:?}, and really {found:?}")),
            }
        }
    }
    invented
}
