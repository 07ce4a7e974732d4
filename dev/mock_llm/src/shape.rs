//! Answers to requests that demand JSON with a given schema: the smallest value that fits, made from the schema.

use serde_json::{Map, Value, json};

/// A value that follows the schema, in the JSON Schema dialects of the protocols (Gemini writes its types in capitals).
pub(crate) fn example(schema: &Value) -> Value {
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first()) {
        return first.clone();
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = schema.get(choice).and_then(Value::as_array).and_then(|schemas| schemas.first()) {
            return example(first);
        }
    }
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0).and_then(Value::as_str)));
    match kind.unwrap_or("object").to_ascii_lowercase().as_str() {
        "string" => json!("Scripted session"),
        "number" | "integer" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(false),
        "array" => json!([]),
        "null" => Value::Null,
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let filled: Map<String, Value> =
                properties.into_iter().flatten().map(|(name, schema)| (name.clone(), example(schema))).collect();
            Value::Object(filled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_gets_a_fitting_value() {
        let schema = json!({"type": "OBJECT", "properties": {
            "title": {"type": "STRING"},
            "next": {"type": "string", "enum": ["user", "model"]},
            "score": {"type": "integer", "minimum": 3},
            "sure": {"type": ["boolean", "null"]},
            "notes": {"type": "array", "items": {"type": "string"}},
        }});
        let expected = json!({"title": "Scripted session", "next": "user", "score": 3, "sure": false, "notes": []});
        assert_eq!(example(&schema), expected);
    }
}
