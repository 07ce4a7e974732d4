//! How opencode reports what happens. In a terminal its output is a drawing, its database does not say which process
//! wrote a row, and it accepts no id of ours. But it runs plugins: ours ([`PLUGIN`]) reports prompts, answers and the
//! ends of turns (`hooks.rs` reads that). In headless mode another plugin ([`NATIVE_ID_PLUGIN`]) reports the conversation
//! before the model's first word, so that a conversation that is interrupted before that can be resumed. The plugins
//! are passed in the environment, in addition to what the person has there; no file of the person is changed.

use crate::launch::Launching;
use serde::Deserialize;
use serde_json::{Value, json};

/// The plugin, as a file of the run. It writes to the hooks file in the same folder.
pub const PLUGIN_FILE: &str = "agent_feed.js";
pub const TOLD_FILE: &str = "hooks";
pub const PLUGIN: &str = include_str!("agent_feed.js");
/// The plugin of a headless run. It writes to [`crate::CONVERSATION`], a file that the processes of several runs share.
pub const NATIVE_ID_PLUGIN: &str = include_str!("native_id.js");

/// Settings of opencode in the environment; its lists of plugins are joined.
const SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";

/// The variable that makes opencode load the plugin. `None` when ours cannot be added to what the person has set there,
/// or when the person wants no plugins; then nothing is reported.
pub fn variable(request: &Launching<'_>) -> Option<(String, String)> {
    if request.session.arguments.iter().any(|argument| argument == "--pure") {
        // A person wants no plugins.
        return None;
    }
    let theirs = (request.variable)(SETTINGS).filter(|text| !text.trim().is_empty());
    let mut settings: Value = theirs.map_or(Ok(json!({})), |text| serde_json::from_str(&text)).ok()?;
    let plugins = settings.as_object_mut()?.entry("plugin").or_insert_with(|| json!([])).as_array_mut()?;
    plugins.push(json!(address(&format!("{}/{PLUGIN_FILE}", request.folder))));
    Some((SETTINGS.to_owned(), settings.to_string()))
}

/// A file as a URL.
fn address(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let encoded =
        path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    format!("file://{}", encoded.collect::<String>())
}

#[derive(Deserialize)]
struct Told {
    pid: i32,
    id: String,
}

/// The conversation that this process reported. An opencode that a tool has started inherits the plugin, and is another
/// process.
pub fn conversation(line: &[u8], pid: i32) -> Option<String> {
    let told: Told = serde_json::from_slice(line).ok()?;
    (told.pid == pid).then_some(told.id)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_whatever_a_folder_is_called() {
        assert_eq!(address("/a b/é.d_e%/x.js"), "file:///a%20b/%C3%A9.d_e%25/x.js");
    }

    #[test]
    fn only_the_process_itself_tells() {
        let line = serde_json::to_vec(&json!({"pid": 7, "id": "ses_1"})).unwrap();
        assert_eq!(conversation(&line, 7), Some("ses_1".to_owned()));
        assert_eq!(conversation(&line, 8), None);
        assert_eq!(conversation(b"{\"pid\":7", 7), None);
    }
}
