//! If a newer agent writes one field differently, we lose only that field: the end of a turn is still recognised.

use crate::samples::all;
use ostler_core::fact::Fact;
use serde_json::{Value, json};

/// The paths of all values.
fn paths(value: &Value, here: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            let path = format!("{here}/{}", name.replace('~', "~0").replace('/', "~1"));
            found.push(path.clone());
            paths(value, &path, found);
        }),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, value)| {
            let path = format!("{here}/{index}");
            found.push(path.clone());
            paths(value, &path, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn each_field_of_each_line_may_become_anything_and_the_turn_still_ends() {
    let others =
        [json!(null), json!(7), json!(-0.5), json!(true), json!("x"), json!([[], {"a": [1]}]), json!({"b": {}})];
    for sample in all() {
        let lines: Vec<Value> = sample.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (index, line) in lines.iter().enumerate() {
            let mut found = Vec::new();
            paths(line, "", &mut found);
            for path in found.iter().filter(|path| *path != "/type") {
                for other in &others {
                    let mut lines = lines.clone();
                    *lines[index].pointer_mut(path).unwrap() = other.clone();
                    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                    let facts = sample.facts(&[text.as_bytes()]);
                    let ends = facts.iter().filter(|fact| matches!(fact, Fact::TurnEnded(_))).count();
                    assert_eq!(ends, 1, "{} line {index} {path} = {other}: {facts:?}", sample.agent.name());
                    let unknown = facts.iter().any(|fact| matches!(fact, Fact::Unknown { .. }));
                    assert!(!unknown, "{} line {index} {path} = {other}: {facts:?}", sample.agent.name());
                }
            }
        }
    }
}
