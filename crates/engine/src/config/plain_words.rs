//! What is wrong with a setting, in plain words: the errors of the parser are written for programmers.

use crate::suggest::nearest;

/// The error in words for a person. What it does not know stays as it is.
pub fn of(message: &str) -> String {
    let message = message.lines().next().unwrap_or_default();
    if let Some((key, known)) = unknown(message, "unknown field ") {
        return match nearest(key, known.iter().copied()) {
            Some(meant) => format!("there is no setting {key:?}; did you mean {meant}?"),
            None if known.is_empty() => format!("there is no setting {key:?}"),
            None => format!("there is no setting {key:?}; use {}", known.join(", ")),
        };
    }
    if let Some((value, known)) = unknown(message, "unknown variant ") {
        return format!("{value:?} is not valid; use {}", known.join(", "));
    }
    if let Some((found, expected)) = type_error(message) {
        return format!("it must be {}, not {found}", form(expected));
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the setting {} is missing", key.replace('`', ""));
    }
    if message.starts_with("string values must be quoted") {
        return "text needs quotes, such as \"10s\"".to_owned();
    }
    message.to_owned()
}

/// The name and the known names of ``unknown field `x`, expected one of `a`, `b` ``.
fn unknown<'a>(message: &'a str, kind: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let mut names = message.strip_prefix(kind)?.split('`').skip(1).step_by(2);
    Some((names.next()?, names.collect()))
}

/// What was found, and what was expected, of ``invalid type: integer `10`, expected a string``.
fn type_error(message: &str) -> Option<(String, &str)> {
    let (found, expected) = message
        .strip_prefix("invalid type: ")
        .or(message.strip_prefix("invalid value: "))?
        .rsplit_once(", expected ")?;
    let found = match found.split_once(['`', '"']) {
        Some((kind, value)) if kind.starts_with("string") => format!("\"{value}"),
        Some((_, value)) => value.trim_end_matches('`').to_owned(),
        None if found == "sequence" => "a list".to_owned(),
        None if found == "map" => "a table".to_owned(),
        None => found.to_owned(),
    };
    Some((found, expected))
}

fn form(expected: &str) -> &str {
    match expected {
        "a string" => "text in quotes",
        "a sequence" => "a list, such as [\"program\", \"--flag\"]",
        "a boolean" => "true or false",
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "a map" => "a table",
        known if known.starts_with("struct ") => "a table",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_parser_are_said_in_plain_words() {
        for (message, words) in [
            (
                "unknown field `comand`, expected one of `command`, `mode`",
                "there is no setting \"comand\"; did you mean command?",
            ),
            ("unknown field `zzz`, expected `slots` or `max_load`", "there is no setting \"zzz\"; use slots, max_load"),
            ("unknown variant `askin`, expected one of `asking`, `turn`", "\"askin\" is not valid; use asking, turn"),
            ("invalid type: integer `10`, expected a string", "it must be text in quotes, not 10"),
            ("invalid type: string \"x\", expected f64", "it must be a number, not \"x\""),
            (
                "invalid type: string \"cat\", expected a sequence",
                "it must be a list, such as [\"program\", \"--flag\"], not \"cat\"",
            ),
            ("invalid type: boolean `true`, expected struct Written", "it must be a table, not true"),
            ("string values must be quoted, expected literal string", "text needs quotes, such as \"10s\""),
            ("\"soon\" is not a duration", "\"soon\" is not a duration"),
        ] {
            assert_eq!(of(message), words);
        }
    }
}
