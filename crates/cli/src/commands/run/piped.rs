//! What is piped into `run AGENT PROMPT` goes to the agent after the prompt, as in
//! `git diff | ostler run AGENT "review"`.
//!
//! Standard input is read to its end. A pipe that was only inherited (from a CI runner, over ssh, inside an agent's
//! tool) may stay open and empty forever. So after a few seconds without data this checks which processes hold the
//! other end of the pipe. When only our parents do, the prompt is sent without it. Otherwise something may still come,
//! and this waits. Both cases are reported.

use super::prompt::{read_all, text, too_long};
use crate::exit::{Failure, Result};
use crate::say::tell;
use ostler_core::MESSAGE_LIMIT;
use ostler_engine::piped::{self, Silent, Source, source};
use std::os::fd::{AsFd, OwnedFd};

/// The prompt, and after it what was piped in.
pub fn after(prompt: String) -> Result<String> {
    let piped = match source(std::io::stdin()) {
        Source::Nothing => return Ok(prompt),
        Source::File => read_all(&mut std::io::stdin().lock(), "standard input")?,
        Source::Stream => read_stream()?,
    };
    joined(prompt, text(piped)?)
}

fn joined(prompt: String, piped: String) -> Result<String> {
    if piped.trim().is_empty() {
        return Ok(prompt);
    }
    let whole = format!("{}\n\n{piped}", prompt.trim_end());
    if whole.len() > MESSAGE_LIMIT { Err(too_long()) } else { Ok(whole) }
}

fn read_stream() -> Result<Vec<u8>> {
    let silent = &mut |silent| match silent {
        Silent::LeftOut => tell!(
            "ostler: nothing came from the pipe on standard input for {} s; continuing without it \
             (to skip this wait, add </dev/null)",
            piped::SILENCE.as_secs()
        ),
        Silent::Awaited => {
            tell!("ostler: waiting for the end of standard input; to run without it, add </dev/null");
        }
    };
    let bytes = piped::read_to_end(std::io::stdin().as_fd(), MESSAGE_LIMIT, silent).map_err(|error| {
        Failure::usage(format!("cannot read standard input: {error}; to leave it out, add </dev/null"))
    })?;
    if bytes.len() > MESSAGE_LIMIT { Err(too_long()) } else { Ok(bytes) }
}

/// What was piped in goes to the command itself, which reads on after this process has exited.
pub fn input() -> Result<Option<OwnedFd>> {
    Ok(piped::for_command(std::io::stdin().as_fd())?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_comes_first_and_both_together_have_the_limit_of_one_message() {
        let join = |prompt: &str, piped: String| joined(prompt.to_owned(), piped).map_err(|failure| failure.words);
        assert_eq!(join("review\n", "a diff\n".to_owned()).unwrap(), "review\n\na diff\n");
        assert_eq!(join("review", " \n".to_owned()).unwrap(), "review");
        assert_eq!(join("12345678", "x".repeat(MESSAGE_LIMIT - 10)).unwrap().len(), MESSAGE_LIMIT);
        assert!(join("123456789", "x".repeat(MESSAGE_LIMIT - 10)).unwrap_err().contains("16 MiB"));
    }
}
