//! What is piped into `run AGENT PROMPT` goes to the agent after the prompt, as in `git diff | ostler run AGENT "review"`.
//!
//! Standard input is read to its end. A pipe that was only inherited (from a CI runner, over ssh, inside an agent's tool)
//! may stay open and empty for ever, so after a few seconds of silence it is looked at which processes hold its other end:
//! when only our parents do, the prompt goes without it. Otherwise something may still come, and we wait; both are said.

use super::prompt::{read_all, text, too_long};
use crate::exit::{Failure, Result};
use crate::say::tell;
use ostler_core::MESSAGE_LIMIT;
use ostler_sys::piped::{Source, is_held_by_parents_only, source};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::time::Timespec;
use std::os::fd::OwnedFd;

/// How long a pipe may be silent before we look at who could write to it.
const SILENCE: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// The prompt, and after it what was piped in.
pub fn after(prompt: String) -> Result<String> {
    let input = rustix::stdio::stdin();
    let piped = match source(input) {
        Source::Nothing => return Ok(prompt),
        Source::File => read_all(&mut std::io::stdin().lock(), "standard input")?,
        Source::Stream => read_stream(input)?,
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

fn read_stream(input: BorrowedFd<'_>) -> Result<Vec<u8>> {
    let wrong = |error: std::io::Error| {
        Failure::usage(format!("cannot read standard input: {error}; to leave it out, add </dev/null"))
    };
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    let mut patience = Some(SILENCE);
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(input, PollFlags::IN)], patience.as_ref()) {
            Ok(0) => {
                patience = None;
                if bytes.is_empty() && is_held_by_parents_only(input).map_err(wrong)? {
                    tell!(
                        "ostler: nothing came from the pipe on standard input for 3 s; continuing without it \
                         (to skip this wait, add </dev/null)"
                    );
                    return Ok(bytes);
                }
                tell!("ostler: waiting for the end of standard input; to run without it, add </dev/null");
                continue;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(wrong(error.into())),
        }
        match rustix::io::read(input, &mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(wrong(error.into())),
        }
        if bytes.len() > MESSAGE_LIMIT {
            return Err(too_long());
        }
    }
}

/// What was piped into us goes to the command itself: it reads on after we have left.
pub fn input() -> Result<Option<OwnedFd>> {
    use std::os::unix::fs::FileTypeExt;
    let input = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).map_err(std::io::Error::from);
    let Ok(input) = input else {
        // Started without a standard input.
        return Ok(None);
    };
    let file = std::fs::File::from(input);
    let kind = file.metadata()?.file_type();
    Ok((!kind.is_char_device()).then(|| file.into()))
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
