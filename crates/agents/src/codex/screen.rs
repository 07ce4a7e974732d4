//! Reads codex's prompt from its screen (0.166.0).

use crate::prompt::{Screen, Seen};

/// The mark of the prompt; a list of choices has it too, in front of the chosen one.
const MARK: &str = "›";
/// The text of an empty prompt.
const PLACEHOLDERS: [&str; 2] = ["Ask Codex to do anything", "Ask a follow-up question"];
/// How many rows above the prompt the line may be that shows a running turn.
const ABOVE: usize = 6;

pub fn look(screen: &Screen<'_>) -> Seen {
    let prompt = screen.prompt(2, |row| row.strip_prefix(MARK).filter(|text| !is_choice(text)));
    let prompt = prompt.filter(|(first, text)| has_started(screen, *first + text.lines().count().max(1)));
    let first = prompt.as_ref().map_or(screen.rows.len(), |(first, _)| *first);
    // Its title has a spinner while it works; a person may have disabled the title.
    let spins = screen.title.and_then(|title| title.chars().next()).is_some_and(is_spinner);
    let says = (first.saturating_sub(ABOVE)..first).any(|row| screen.row(row).contains("esc to interrupt"));
    Seen {
        dialog: prompt.is_none() && screen.rows.iter().any(|row| row.strip_prefix(MARK).is_some_and(is_choice)),
        typed: prompt.map(|(_, text)| if PLACEHOLDERS.contains(&text.as_str()) { String::new() } else { text }),
        working: spins || says,
        begins: false,
    }
}

/// Codex shows a prompt before it has started, and dialogs may still come. At that time it has no title, and the line
/// below the prompt that names the model is missing. `behind`: the row after the prompt.
fn has_started(screen: &Screen<'_>, behind: usize) -> bool {
    screen.title.is_some() || !screen.row(behind + 1).is_empty()
}

/// `› 1. Try new model`.
fn is_choice(behind_mark: &str) -> bool {
    let digits = behind_mark.trim_start().trim_start_matches(|character: char| character.is_ascii_digit());
    digits.len() < behind_mark.trim_start().len() && digits.starts_with(". ")
}

fn is_spinner(character: char) -> bool {
    ('\u{2800}'..='\u{28ff}').contains(&character)
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::prompt::tests::seen;

    const EMPTY: &str = "  >_ OpenAI Codex (v0.166.0)\n     /work\n\n\n› Ask Codex to do anything\n\n  scripted default · /work\n  ? for shortcuts";

    #[test]
    fn an_empty_prompt_is_ready() {
        assert!(seen(look, EMPTY, (4, 2), "work").is_ready());
        assert!(!seen(look, EMPTY, (4, 2), "⠹ Scripted session | work").is_ready(), "a turn runs");
        assert!(!seen(look, EMPTY, (4, 1), "").is_ready(), "the cursor is not in it");
    }

    #[test]
    fn what_is_typed_is_seen_over_several_lines() {
        let text = "• two\n\n› hello my draft which is quite long and needs to wrap around in the window of\n  eighty columns\n\n  scripted default · /work\n";
        let found = seen(look, text, (3, 16), "work");
        assert!(
            found.shows("hello my draft which is quite long and needs to wrap around in the window of eighty columns")
        );
        assert!(!found.is_ready());
        assert!(
            seen(look, text, (2, 2), "work")
                .shows("hello my draft which is quite long and needs to wrap around in the window of eighty columns")
        );
    }

    #[test]
    fn dialogs_are_no_prompt() {
        let update =
            "\n  Meet GPT-6 Sol\n\n› 1. Try new model\n  2. Use existing model\n\n  enter/esc confirm · ^c quit";
        let found = seen(look, update, (20, 1), "");
        assert!(found.dialog && found.typed.is_none());
        let models = "\n  Select Model and Effort\n\n› 1. GPT-6.1-Sol    Latest\n  2. GPT-6-Astra    Frontier\n  enter select · esc back";
        let found = seen(look, models, (5, 79), "Scripted session | work");
        assert!(found.dialog && found.typed.is_none());
        let found = seen(look, models, (4, 5), "Scripted session | work");
        assert!(found.dialog && found.typed.is_none());
    }

    #[test]
    fn a_prompt_before_the_start_is_none() {
        let early = "  >_ OpenAI Codex (v0.166.0)\n     loading\n\n\n› Ask Codex to do anything\n\n\n  ? for shortcuts";
        assert_eq!(seen(look, early, (4, 2), "").typed, None);
        assert!(seen(look, EMPTY, (4, 2), "").is_ready());
    }

    #[test]
    fn nothing_drawn_yet_is_neither() {
        let found = seen(look, "", (0, 0), "");
        assert!(!found.dialog && found.typed.is_none() && !found.working);
    }
}
