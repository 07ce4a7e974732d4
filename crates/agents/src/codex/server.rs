//! Codex's shared background server. In a terminal codex only draws. The work is done by one server for all terminals
//! of a home; codex starts it when there is none (0.156 and later) and connects to it when there is one (0.150
//! already). Work in that server is in no process tree of ours: `stop` could not end it, and the end of the session
//! that has started the server would disturb the others. So ostler starts codex with the option that keeps the work in
//! its own process.
//!
//! Measured with 0.166.0: the option also works while a server runs, and before `resume` and `fork`. The setting
//! `features.daemon_auto_start = false` is not enough: while a server runs, codex then opens a dialog that offers to
//! restart it. `codex exec` never uses the server.

/// Known since 0.156 at the latest; 0.153 does not have this option and does not start a server by itself.
pub const NOT_USED: &str = "--no-daemon";

/// The command with which a person ends the server.
pub const HOW_TO_END: &str = "codex app-server daemon stop";

/// A person's own arguments without the option, which codex accepts only once. The arguments after `--` are a prompt.
pub fn without_the_option(arguments: &[String]) -> impl Iterator<Item = String> {
    let prompt = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    arguments.iter().enumerate().filter(move |(place, argument)| *place > prompt || *argument != NOT_USED).map(owned)
}

fn owned((_, argument): (usize, &String)) -> String {
    argument.clone()
}

/// Arguments that ask for a server.
pub fn conflict(arguments: &[String]) -> Option<&'static str> {
    let named = arguments.iter().take_while(|argument| *argument != "--");
    let mut options = named.map(|argument| argument.split('=').next().unwrap_or_default());
    if options.any(|option| option == "--remote") {
        return Some("--remote runs the work in another server, which ostler cannot stop; remove it");
    }
    (arguments.first().map(String::as_str) == Some("agents"))
        .then_some("codex agents uses the shared server of codex, which ostler cannot stop; run it without ostler")
}

/// Whether codex with these arguments gives the work to a running server.
pub fn may_be_used(argv: &[String]) -> bool {
    let first = argv.get(1).map(String::as_str);
    first != Some("exec") && first != Some(NOT_USED)
}

pub fn in_force(argv: &[String]) -> Option<&'static str> {
    let ours = argv.get(1).map(String::as_str) == Some(NOT_USED);
    ours.then_some("works in its own process (--no-daemon), not in the shared background server of codex")
}

/// Where the server listens.
pub fn socket(codex_home: &str) -> String {
    format!("{codex_home}/app-server-control/app-server-control.sock")
}

/// Whether the process with these arguments is the server.
pub fn is_one(argv: &[String]) -> bool {
    argv.get(1).map(String::as_str) == Some("app-server")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn the_option_is_given_once_and_a_prompt_stays_as_it_is() {
        let given = words(&["--search", NOT_USED, "--", NOT_USED]);
        assert_eq!(without_the_option(&given).collect::<Vec<_>>(), ["--search", "--", NOT_USED]);
    }

    #[test]
    fn arguments_that_ask_for_a_server_are_refused() {
        assert!(conflict(&words(&["--remote", "unix://"])).is_some());
        assert!(conflict(&words(&["--remote=unix://"])).is_some());
        assert!(conflict(&words(&["agents"])).is_some());
        assert_eq!(conflict(&words(&["--search", "--", "--remote"])), None);
    }
}
