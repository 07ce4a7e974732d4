//! Reads opencode's prompt from its screen (1.18.33).

use crate::prompt::{Screen, Seen};

/// The left edge of the prompt's box (and of other boxes), and the lower end of that edge, which only the prompt's box
/// has.
const EDGE: char = '┃';
const LOWER_END: &str = "╹▀";
/// The text of the prompt while there is no conversation yet.
const PLACEHOLDER: &str = "Ask anything";
/// The last line of the box when what is typed will run as a command.
const SHELL: &str = "Shell";

pub fn look(screen: &Screen<'_>) -> Seen {
    let end = screen.rows.iter().rposition(|row| row.trim_start().starts_with(LOWER_END));
    let working = screen.rows.iter().skip(end.unwrap_or(0)).any(|row| is_interruptible(row));
    let dialog = end.is_none() && screen.rows.iter().any(|row| row.contains("Permission required") || is_choice(row));
    let begins = screen.rows.iter().take(end.unwrap_or(0)).any(|row| is_placeholder(row));
    Seen { typed: end.and_then(|end| typed(screen, end)), working, dialog, begins }
}

/// When opencode is told to copy a conversation, it shows the prompt for a new one until the copy is made (measured).
fn is_placeholder(row: &str) -> bool {
    row.trim_start().strip_prefix(EDGE).is_some_and(|text| text.trim_start().starts_with(PLACEHOLDER))
}

/// `esc interrupt`, and `esc again to interrupt`.
fn is_interruptible(row: &str) -> bool {
    row.contains("esc interrupt") || row.contains("again to interrupt")
}

fn is_choice(row: &str) -> bool {
    row.contains("enter con") || row.contains("enter submit") || row.contains("esc dismiss")
}

/// The text in the box above this row, when the cursor is in it. The box's last line names the model.
fn typed(screen: &Screen<'_>, end: usize) -> Option<String> {
    let inside = |row: usize| screen.row(row).trim_start().strip_prefix(EDGE);
    let first = (0..end).rev().take_while(|&row| inside(row).is_some()).last()?;
    let model = end.checked_sub(1)?;
    let (row, column) = screen.cursor;
    // Lists that open above the box have an edge on both sides.
    let first = (first..=row).rev().take_while(|&row| !screen.row(row).ends_with(EDGE)).last().unwrap_or(first);
    let edge = screen.row(row).chars().position(|character| character == EDGE)?;
    if !(first..model).contains(&row) || column <= edge || inside(model)?.trim() == SHELL {
        return None;
    }
    let lines: Vec<&str> = (first..model).filter_map(inside).map(str::trim).collect();
    let text = lines.join("\n").trim().to_owned();
    Some(if text.starts_with(PLACEHOLDER) { String::new() } else { text })
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::prompt::tests::seen;

    const HOME: &str = "\n   ┃\n   ┃  Ask anything… \"What is the tech stack of this project?\"\n   ┃\n   ┃  Build · large scripted\n   ╹▀▀▀▀▀\n        tab agents  ctrl+p commands\n";

    fn with_prompt(lines: &str, below: &str) -> String {
        format!(
            "  ┃\n  ┃  stream 100 30\n  ┃\n\n     ▣  Build · large\n\n  ┃\n{lines}\n  ┃\n  ┃  Build · large scripted\n  ╹▀▀▀▀▀\n   {below}\n"
        )
    }

    #[test]
    fn an_empty_prompt_is_ready() {
        let home = seen(look, HOME, (2, 6), "OpenCode");
        assert!(home.is_ready() && home.begins);
        assert!(seen(look, &with_prompt("  ┃", "/work    1.0K  ctrl+p commands"), (7, 5), "").is_ready());
        assert!(!seen(look, &with_prompt("  ┃", "/work"), (7, 5), "").begins);
        assert!(!seen(look, &with_prompt("  ┃", "⬝⬝■■  esc interrupt    ctrl+p commands"), (7, 5), "").is_ready());
        assert!(!seen(look, HOME, (20, 78), "").is_ready(), "the cursor is not in it");
        let shell = with_prompt("  ┃", "/work").replace("  ┃  Build · large scripted\n  ╹", "  ┃  Shell\n  ╹");
        assert!(!seen(look, &shell, (7, 5), "").is_ready(), "it would run the message as a command");
    }

    #[test]
    fn what_is_typed_is_seen() {
        assert!(seen(look, &with_prompt("  ┃  short draft", "/work"), (7, 16), "").shows("short draft"));
        assert!(seen(look, &with_prompt("  ┃  one\n  ┃  two", "/work"), (8, 8), "").shows("one two"));
        assert!(seen(look, &with_prompt("  ┃  [Pasted ~5 lines]", "/work"), (7, 23), "").shows("1\n2\n3\n4\n5"));
        let list =
            "  ┃ /agents       Switch agent            ┃\n  ┃\n  ┃  /\n  ┃\n  ┃  Build · large scripted\n  ╹▀▀▀\n";
        assert_eq!(seen(look, list, (2, 6), "").typed.as_deref(), Some("/"));
    }

    #[test]
    fn a_permission_is_no_prompt() {
        let asks = "  ┃\n  ┃  △ Permission required\n  ┃    # Shell command\n  ┃\n  ┃  $ touch x\n  ┃\n  ┃   Allow once   Allow always   Reject  ctrl+f fullscreen  ⇆ select  enter con\n  ┃\n";
        let found = seen(look, asks, (22, 78), "");
        assert!(found.dialog && found.typed.is_none());
    }
}
