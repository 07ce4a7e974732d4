//! Usage limits, for tests: `OSTLER_DEMO_LIMITS` names a file, and each turn takes the first line out of it. While
//! there is one, the turn is refused as Claude Code refuses it.
//!
//! | line | the turn |
//! | --- | --- |
//! | `5` | is refused; the limit is reset in five seconds |
//! | `5 begun` | is refused in the same way, after some text |
//! | `-` | is refused, without a time of the reset |
//! | `none` | is not refused |

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that names the file.
const VARIABLE: &str = "OSTLER_DEMO_LIMITS";

pub struct Limit {
    /// Seconds since 1970.
    pub resets_at: Option<i64>,
    /// Whether the turn says something first.
    pub begins: bool,
}

/// The limit of the turn that begins now.
pub fn next() -> Option<Limit> {
    let file = std::env::var_os(VARIABLE)?;
    let text = fs::read_to_string(&file).ok()?;
    let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
    if line.is_empty() {
        return None;
    }
    fs::write(&file, rest).ok()?;
    let mut words = line.split_whitespace();
    let first = words.next().filter(|word| *word != "none")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let resets_at = first.parse::<i64>().ok().map(|ahead| i64::try_from(now.as_secs()).unwrap_or(0) + ahead);
    Some(Limit { resets_at, begins: words.next() == Some("begun") })
}
