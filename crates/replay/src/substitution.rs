//! The ids in a recording, and their present values.
//!
//! A conversation and its messages get new ids in every session, and the proof that a turn is saved searches for them.
//! So what is printed and saved contains the new ids, not the recorded ones.

/// Recorded text and its present replacement.
#[derive(Default)]
pub struct Substitution(Vec<(String, String)>);

impl Substitution {
    pub fn learn(&mut self, recorded: &str, now: &str) {
        if !recorded.is_empty() && recorded != now {
            self.0.push((recorded.to_owned(), now.to_owned()));
        }
    }

    pub fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (recorded, now)| text.replace(recorded, now))
    }

    /// The same for a path, which may contain only the beginning of the conversation's id.
    pub fn apply_to_path(&self, path: &str) -> String {
        let short = |name: &str| name.get(..8).map(str::to_owned);
        self.0.iter().fold(path.to_owned(), |path, (recorded, now)| {
            let whole = path.replace(recorded, now);
            match (short(recorded), short(now)) {
                (Some(recorded), Some(now)) if whole == path && !recorded.starts_with('/') => {
                    path.replace(&recorded, &now)
                }
                _ => whole,
            }
        })
    }
}
