//! Reads qwen's prompt from its screen (0.15.10): it is between two horizontal rules, and the cursor is not in it.

use crate::prompt::{Screen, Seen};

/// The marks of its prompt: the usual one, and the one when every tool is allowed. With `!` what is typed would run as
/// a command.
const MARKS: [char; 2] = ['>', '*'];
/// The text of an empty prompt.
const PLACEHOLDER: &str = "Type your message or @path/to/file";
const RULE: &str = "────";

pub fn look(screen: &Screen<'_>) -> Seen {
    let typed = prompt(screen).map(|text| if text == PLACEHOLDER { String::new() } else { text });
    let says = |words: &str| screen.rows.iter().any(|row| row.contains(words));
    Seen { dialog: typed.is_none(), typed, working: says("esc to cancel)"), begins: false }
}

/// The text between the last two rules, when it begins with a mark.
fn prompt(screen: &Screen<'_>) -> Option<String> {
    let rules: Vec<usize> = (0..screen.rows.len()).filter(|&place| screen.row(place).starts_with(RULE)).collect();
    let [.., top, bottom] = rules.as_slice() else {
        return None;
    };
    let lines = (top + 1..*bottom).map(|place| screen.row(place).trim());
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut rest = text.chars();
    rest.next().filter(|mark| MARKS.contains(mark))?;
    Some(rest.as_str().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::prompt::tests::seen;

    fn with_prompt(above: &str, lines: &str) -> String {
        format!("  > stream 100 100\n\n  ✦ word1 word2\n\n{above}\n──────\n{lines}\n──────\n  ? for shortcuts\n")
    }

    #[test]
    fn an_empty_prompt_is_ready_unless_a_turn_runs() {
        let empty = ">   Type your message or @path/to/file";
        assert!(seen(look, &with_prompt("", empty), (20, 0), "Qwen - w").is_ready());
        assert!(seen(look, &with_prompt("", "*   Type your message or @path/to/file"), (20, 0), "").is_ready());
        let works = "  .   Thinking... (2s · ↓ 24 tokens · esc to cancel)";
        assert!(!seen(look, &with_prompt(works, empty), (20, 0), "").is_ready());
    }

    #[test]
    fn what_is_typed_is_seen_and_a_dialog_is_no_prompt() {
        let two = with_prompt("", "> hello my draft which is long\n  and needs a second line");
        assert!(seen(look, &two, (20, 0), "").shows("hello my draft which is long and needs a second line"));
        let asks = "  ? Shell touch x\n  Allow execution of: 'touch'?\n  › 1. Yes, allow once\n    2. No\n";
        let found = seen(look, asks, (20, 0), "");
        assert!(found.dialog && found.typed.is_none() && !found.is_ready());
    }
}
