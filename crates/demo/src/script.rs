//! Prompts with a special meaning, for tests: each makes the agent do one thing that a keeper must handle. The table is
//! in the crate's documentation.

use crate::face::{Ending, Verdict};
use crate::leave::{Cut, Leave};
use crate::limit;
use crate::review;
use crate::story;
use crate::turn::{Edited, Turn};

pub fn play(turn: &mut Turn<'_>, prompt: &str) -> Result<Ending, Cut> {
    let (word, rest) = prompt.split_once(char::is_whitespace).unwrap_or((prompt, ""));
    if let Some(limit) = limit::next() {
        if limit.begins {
            turn.think()?;
            turn.say("I begin.")?;
        }
        return Ok(Ending::Limited { resets_at: limit.resets_at });
    }
    match word {
        "continue" => answer(turn, "continued"),
        "spend" => {
            let (usd, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            turn.spend((usd.parse::<f64>().unwrap_or(0.0) * 1e6) as u64);
            answer(turn, text)
        }
        "say" => answer(turn, rest),
        "count" => match rest.trim().parse() {
            Ok(last) => count(turn, last),
            Err(_) => story::play(turn, prompt),
        },
        "sleep" => sleep(turn),
        "ask" => ask(turn, rest),
        "fail" => fail(turn, rest),
        "crash" => crash(turn),
        "echo-length" => {
            let text = format!("{} bytes, checksum {:016x}", prompt.len(), checksum(prompt.as_bytes()));
            answer(turn, &text)
        }
        "run-command" => run_command(turn, rest),
        "edit-file" => match rest.split_whitespace().collect::<Vec<_>>()[..] {
            [file, old, new] => edit_file(turn, file, old, new),
            _ => story::play(turn, prompt),
        },
        "say-line" => answer(turn, rest.lines().next().unwrap_or_default()),
        "run-line" => run_line(turn, rest),
        "Review" if prompt.contains("\"verdict\"") => answer(turn, &review::of(prompt)),
        "leave" => leave_something(turn),
        _ => story::play(turn, prompt),
    }
}

/// FNV-1a, 64 bits: easy to compute in any language.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An answer of the model with one text, which ends the turn.
pub fn answer(turn: &mut Turn<'_>, text: &str) -> Result<Ending, Cut> {
    turn.think()?;
    turn.say(text)?;
    Ok(Ending::Done { text: text.to_owned() })
}

fn count(turn: &mut Turn<'_>, last: u64) -> Result<Ending, Cut> {
    turn.think()?;
    for number in 1..=last {
        turn.state(&number.to_string())?;
    }
    Ok(Ending::Done { text: format!("counted to {last}") })
}

fn sleep(turn: &mut Turn<'_>) -> Result<Ending, Cut> {
    turn.think()?;
    let folder = turn.traits().cwd.clone();
    let given = turn.bash(&folder, "sleep 1000", "Sleeps for a long time")?;
    answer(turn, &format!("the sleep ended: {}", given.text))
}

fn ask(turn: &mut Turn<'_>, text: &str) -> Result<Ending, Cut> {
    turn.think()?;
    let verdict = turn.ask_only(text)?;
    match verdict {
        Verdict::Allowed => answer(turn, &format!("allowed: {text}")),
        Verdict::Denied { reason } => answer(turn, &format!("denied: {text} ({reason})")),
    }
}

fn fail(turn: &mut Turn<'_>, text: &str) -> Result<Ending, Cut> {
    turn.think()?;
    turn.say(text)?;
    Ok(Ending::Failed { text: text.to_owned(), api_status: Some(500) })
}

fn crash(turn: &mut Turn<'_>) -> Result<Ending, Cut> {
    turn.think()?;
    turn.say("I feel unwell.")?;
    Err(Cut::Leave(Leave::Crash))
}

fn run_command(turn: &mut Turn<'_>, command: &str) -> Result<Ending, Cut> {
    turn.think()?;
    let folder = turn.traits().cwd.clone();
    turn.bash(&folder, command, "Runs the requested command")?;
    answer(turn, "done")
}

fn run_line(turn: &mut Turn<'_>, text: &str) -> Result<Ending, Cut> {
    turn.think()?;
    let folder = turn.traits().cwd.clone();
    let mut lines = text.lines();
    turn.bash(&folder, lines.next().unwrap_or_default(), "Runs the requested command")?;
    answer(turn, lines.next().unwrap_or("done"))
}

fn edit_file(turn: &mut Turn<'_>, file: &str, old: &str, new: &str) -> Result<Ending, Cut> {
    turn.think()?;
    let file = turn.traits().cwd.join(file);
    match turn.edit(&file, old, new)? {
        Edited::Done => answer(turn, "done"),
        Edited::Denied { reason } => answer(turn, &format!("not allowed: {reason}")),
        Edited::Failed { why } => answer(turn, &format!("not done: {why}")),
    }
}

fn leave_something(turn: &mut Turn<'_>) -> Result<Ending, Cut> {
    turn.think()?;
    let folder = turn.traits().cwd.clone();
    let given = turn.bash(&folder, "setsid sleep 1000 & echo $!", "Leaves a process behind")?;
    match given.is_error {
        false => answer(turn, &format!("left process {} running", given.text)),
        true => answer(turn, &format!("left nothing: {}", given.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_fnv_1a() {
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
