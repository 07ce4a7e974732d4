//! Reads gemini's prompt from its screen (0.61.0).

use crate::prompt::{Screen, Seen};

/// The marks of its prompt: the usual one, and the one when every tool is allowed. With `!` what is typed would run as
/// a command.
const MARKS: [&str; 2] = [" > ", " * "];
/// The text of an empty prompt.
const PLACEHOLDER: &str = "Type your message or @path/to/file";

pub fn look(screen: &Screen<'_>) -> Seen {
    let prompt = screen.prompt(3, |row| MARKS.iter().find_map(|mark| row.strip_prefix(mark)));
    let title = screen.title.and_then(|title| title.chars().next());
    let says = |words: &str| screen.rows.iter().any(|row| row.contains(words));
    let asks = title == Some('✋');
    let chooses = || says("● 1.") || says("(Use Enter to select") || says("Press Enter to ");
    Seen {
        dialog: asks || (prompt.is_none() && chooses()),
        typed: prompt.map(|(_, text)| if text == PLACEHOLDER { String::new() } else { text }),
        working: matches!(title, Some('✦' | '⏲')) || says("(esc to cancel, "),
        begins: false,
    }
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::prompt::tests::seen;

    const READY: &str = "◇  Ready (work)";

    fn with_prompt(lines: &str) -> String {
        format!(
            " > stream 100 30\n\n✦ word1 word2\n\n────\n Shift+Tab to accept edits\n\n{lines}\n\n workspace (/directory)      sandbox\n /work                       no sandbox\n"
        )
    }

    #[test]
    fn an_empty_prompt_is_ready() {
        let empty = with_prompt(" >   Type your message or @path/to/file");
        assert!(seen(look, &empty, (7, 3), READY).is_ready());
        assert!(seen(look, &with_prompt(" *   Type your message or @path/to/file"), (7, 3), READY).is_ready());
        assert!(!seen(look, &empty, (7, 3), "✦  Working… (work)").is_ready());
        assert!(!seen(look, &empty.replace("word2", "⠹ Thinking... (esc to cancel, 1s)"), (7, 3), "").is_ready());
        assert!(!seen(look, &empty, (0, 0), READY).is_ready(), "the cursor is not in it");
    }

    #[test]
    fn what_is_typed_is_seen() {
        let two = with_prompt(
            " > hello my draft which is quite long and needs to wrap around in the window\n   of eighty columns",
        );
        let found = seen(look, &two, (8, 20), READY);
        assert!(
            found.shows("hello my draft which is quite long and needs to wrap around in the window of eighty columns")
        );
        assert!(seen(look, &with_prompt(" > [Pasted Text: 8 lines]"), (7, 25), READY).shows("a\nb"));
        assert!(seen(look, &with_prompt(" !   Type your shell command"), (7, 3), READY).typed.is_none());
    }

    #[test]
    fn dialogs_are_no_prompt() {
        let theme = " > /theme\n\n╭────╮\n│ > Select Theme       Preview │\n│ ●  6. Default Dark │\n│ (Use Enter to select, Tab to configure scope, Esc to close) │\n╰────╯\n";
        let found = seen(look, theme, (23, 0), READY);
        assert!(found.dialog && found.typed.is_none());
        let asks =
            " > go\n\n╭────╮\n│ ? Shell  touch x │\n│ Allow execution of [Shell]? │\n│ ● 1. Allow once │\n╰────╯\n";
        let found = seen(look, asks, (19, 0), "✋  Action Required (work)");
        assert!(found.dialog && found.typed.is_none());
    }
}
