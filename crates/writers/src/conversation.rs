//! What identifies a conversation, whichever session keeps it: an agent, the folder in which that agent keeps its
//! conversations, and the agent's own id. Not our session's id: two of our sessions can use the same conversation, and
//! a copied home has the same ids twice.

use crate::Variable;
use ostler_agents::Agent;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    pub agent: String,
    pub config: PathBuf,
    pub native_id: String,
}

impl Conversation {
    /// `None` for an agent without conversations.
    #[must_use]
    pub fn of(agent: &dyn Agent, native_id: &str, variable: Variable<'_>) -> Option<Conversation> {
        let config = agent.conversations_folder(variable)?;
        let config = canonical(&std::path::absolute(config).ok()?);
        Some(Conversation { agent: agent.name().to_owned(), config, native_id: native_id.to_owned() })
    }

    /// The name of its lock file: the same for the same conversation, and different for every other one.
    #[must_use]
    pub fn file_name(&self) -> String {
        let parts = [self.agent.as_bytes(), self.config.as_os_str().as_encoded_bytes(), self.native_id.as_bytes()];
        // A path and an id contain no zero byte, so the parts cannot be confused.
        format!("{}-{:032x}.lock", self.agent, fnv1a(&parts.join(&0)))
    }
}

/// The path as the kernel reports it, also if its end does not exist yet: an agent creates its folder when it first
/// runs, and the path must be the same afterwards.
fn canonical(path: &Path) -> PathBuf {
    if let Ok(found) = std::fs::canonicalize(path) {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        (None, _) | (_, None) => path.to_owned(),
    }
}

/// FNV-1a with 128 bits: different names get different files, and the same ones on every machine and in every version.
fn fnv1a(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn conversation(agent: &str, home: &Path, native_id: &str) -> Conversation {
        let home = home.to_string_lossy().into_owned();
        let agent = ostler_agents::find(agent).unwrap();
        Conversation::of(agent, native_id, &|name| (name == "HOME").then(|| home.clone())).unwrap()
    }

    #[test]
    fn the_hash_is_the_published_one_and_therefore_the_same_in_every_version() {
        assert_eq!(fnv1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn agent_folder_and_id_tell_conversations_apart_and_a_link_to_the_folder_does_not() {
        let root = tempfile::tempdir().unwrap();
        let (one, link) = (root.path().join("one"), root.path().join("link"));
        std::fs::create_dir(&one).unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let name = |agent: &str, home: &Path, id: &str| conversation(agent, home, id).file_name();
        let first = name("claude", &one, "a");
        assert_eq!(first, name("claude", &link, "a"), "before the agent has made its folder");
        std::fs::create_dir(one.join(".claude")).unwrap();
        assert_eq!(first, name("claude", &one, "a"), "and after that");
        assert_eq!(first, name("claude", &link, "a"));
        for other in [name("claude", &one, "b"), name("codex", &one, "a"), name("claude", root.path(), "a")] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn a_command_has_no_conversation() {
        let command = ostler_agents::find("command").unwrap();
        assert_eq!(Conversation::of(command, "a", &|_| Some("/h".to_owned())), None);
    }
}
