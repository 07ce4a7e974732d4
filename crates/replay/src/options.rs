//! The command line of the player.

use std::path::PathBuf;
use std::time::Duration;

pub struct Options {
    pub file: PathBuf,
    /// This session's id of the conversation.
    pub conversation: String,
    /// The folder that replaces the agent's home folder.
    pub home: PathBuf,
    /// Where the transcript is written; `None`: where the recorded agent wrote it.
    pub transcript: Option<PathBuf>,
    pub speed: Speed,
}

/// How long the pauses are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// This many times faster than recorded.
    Times(f64),
    /// No pauses at all.
    Max,
}

impl Speed {
    pub fn pause(self, recorded_ms: u64) -> Duration {
        match self {
            Speed::Times(times) => Duration::from_millis(recorded_ms).div_f64(times),
            Speed::Max => Duration::ZERO,
        }
    }
}

impl Options {
    /// The file, then the arguments that ostler adds, then the arguments that a person gave after `--`.
    pub fn read(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let file = words.next().ok_or("no recording is named")?.into();
        let (mut conversation, mut home, mut transcript, mut speed) = (None, None, None, Speed::Times(1.0));
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--conversation" => conversation = Some(value()?),
                "--home" => home = Some(value()?.into()),
                "--transcript" => transcript = Some(value()?.into()),
                "--speed" => speed = read_speed(&value()?)?,
                _ => return Err(format!("{word:?} is not known; a recording takes only --speed N or --speed max")),
            }
        }
        let conversation = conversation.ok_or("no conversation is named")?;
        Ok(Options { file, conversation, home: home.ok_or("no home is named")?, transcript, speed })
    }
}

/// Checks the arguments that a person gave after `--`, before anything is started.
///
/// # Errors
/// When an argument is wrong; the text says what is wrong.
pub fn check_arguments(words: &[String]) -> Result<(), String> {
    let given = ["file", "--conversation", "", "--home", ""].map(str::to_owned);
    Options::read(given.into_iter().chain(words.iter().cloned())).map(drop)
}

fn read_speed(word: &str) -> Result<Speed, String> {
    // At less than a thousandth of the speed, a pause might not fit into a duration.
    let wrong = || format!("--speed {word} is not a speed (examples: 10 for ten times faster, max for no pauses)");
    match word {
        "max" => Ok(Speed::Max),
        number => match number.parse::<f64>() {
            Ok(times) if (0.001..=1e6).contains(&times) => Ok(Speed::Times(times)),
            Ok(_) | Err(_) => Err(wrong()),
        },
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options, String> {
        let given = ["file", "--conversation", "c", "--home", "/h"];
        Options::read(given.iter().chain(words).map(|word| (*word).to_owned()))
    }

    #[test]
    fn a_speed_shortens_the_pauses() {
        assert_eq!(read(&[]).unwrap().speed.pause(300), Duration::from_millis(300));
        assert_eq!(read(&["--speed", "10"]).unwrap().speed.pause(300), Duration::from_millis(30));
        assert_eq!(read(&["--speed", "max"]).unwrap().speed.pause(300), Duration::ZERO);
    }

    #[test]
    fn invalid_arguments_are_refused_with_a_reason() {
        for wrong in ["0", "-1", "nan", "inf", "fast"] {
            assert!(read(&["--speed", wrong]).is_err_and(|words| words.contains("is not a speed")), "{wrong}");
        }
        assert!(read(&["--fast"]).is_err() && read(&["--speed"]).is_err());
    }
}
