//! Conversations that people name in an agent's own arguments, as in `ostler run claude -- --resume ID`.

/// The id after one of these flags, and the arguments without both. `None` when it is not an id (a number in a list,
/// words to search for), or when `forks` is among the arguments: a copy is another conversation.
pub fn behind(
    arguments: &[String],
    flags: &[&str],
    forks: &str,
    is_id: fn(&str) -> bool,
) -> Option<(String, Vec<String>)> {
    if arguments.iter().any(|argument| argument == forks) {
        return None;
    }
    for (place, argument) in arguments.iter().enumerate() {
        let (flag, joined) = match argument.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (argument.as_str(), None),
        };
        if !flags.contains(&flag) {
            continue;
        }
        let (id, length) = match joined {
            Some(id) => (id, 1),
            None => (arguments.get(place + 1)?.as_str(), 2),
        };
        let rest = arguments.iter().take(place).chain(arguments.iter().skip(place + length)).cloned();
        return is_id(id).then(|| (id.to_owned(), rest.collect()));
    }
    None
}

/// `01a1ddbd-408d-7262-88d9-97e7e2d532f0`.
pub fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use crate::Agent;

    const ID: &str = "01a1ddbd-408d-7262-88d9-97e7e2d532f0";

    fn named(agent: &dyn Agent, arguments: &[&str]) -> Option<(String, Vec<String>)> {
        agent.named_conversation(&arguments.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn an_id_is_found_in_each_form_and_taken_out() {
        let rest = vec!["--model".to_owned(), "m".to_owned()];
        let found = Some((ID.to_owned(), rest));
        assert_eq!(named(&crate::claude::Claude, &["--resume", ID, "--model", "m"]), found);
        assert_eq!(named(&crate::claude::Claude, &["--model", "m", "-r", ID]), found);
        assert_eq!(named(&crate::gemini::Gemini, &["--model", "m", &format!("--resume={ID}")]), found);
        assert_eq!(named(&crate::codex::Codex, &["--model", "m", "resume", ID]), found);
        let session = named(&crate::opencode::Opencode, &["-s", "ses_1"]);
        assert_eq!(session, Some(("ses_1".to_owned(), Vec::new())));
    }

    /// The agent chooses the conversation when it runs, so ostler could not keep other processes out of it.
    #[test]
    fn the_newest_conversation_is_refused_and_a_copy_of_it_is_not() {
        let refused = |agent: &dyn Agent, words: &[&str]| {
            agent.conflicts(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()).is_some()
        };
        assert!(refused(&crate::claude::Claude, &["--continue"]) && refused(&crate::claude::Claude, &["-c"]));
        assert!(refused(&crate::codex::Codex, &["resume", "--last"]));
        assert!(refused(&crate::gemini::Gemini, &["--resume", "latest"]));
        assert!(refused(&crate::gemini::Gemini, &["-r"]) && refused(&crate::gemini::Gemini, &["--resume=2"]));
        assert!(refused(&crate::opencode::Opencode, &["--continue"]) && refused(&crate::opencode::Opencode, &["-c"]));
        assert!(!refused(&crate::opencode::Opencode, &["--continue", "--fork"]));
        assert!(!refused(&crate::opencode::Opencode, &["-s", "ses_1"]));
        assert!(!refused(&crate::gemini::Gemini, &["--resume", ID]));
        assert!(!refused(&crate::codex::Codex, &["resume", ID]));
    }

    #[test]
    fn words_that_are_no_id_and_copies_are_left_to_the_agent() {
        assert_eq!(named(&crate::claude::Claude, &["--resume", "the failing test"]), None);
        assert_eq!(named(&crate::claude::Claude, &["--resume"]), None);
        assert_eq!(named(&crate::claude::Claude, &["--resume", ID, "--fork-session"]), None);
        assert_eq!(named(&crate::gemini::Gemini, &["--resume", "latest"]), None);
        assert_eq!(named(&crate::opencode::Opencode, &["--session", "ses_1", "--fork"]), None);
        assert_eq!(named(&crate::codex::Codex, &["resume", "--last"]), None);
    }
}
