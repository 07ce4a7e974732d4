//! The real agents that `cargo xtask agents` installed, and what each needs to use a [`Server`](crate::Server) instead
//! of its maker's: no files of the person who runs the tests, and no network.

use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The server accepts any key; the agents need one.
const KEY: &str = "scripted";

/// An agent that tests can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Qwen,
    /// Claude behind the Agent Client Protocol.
    ClaudeAcp,
    /// Codex behind the Agent Client Protocol.
    CodexAcp,
}

/// Why an agent cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    #[error("no agents are installed ({0}); run `cargo xtask agents`")]
    Everything(io::Error),
    #[error("{name} is not among the installed agents; run `cargo xtask agents`")]
    One { name: &'static str },
}

impl Agent {
    pub fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Opencode => "opencode",
            Agent::Qwen => "qwen",
            Agent::ClaudeAcp => "claude-code-acp",
            Agent::CodexAcp => "codex-acp",
        }
    }

    /// The program and its first arguments: the agent itself, never a launcher.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn program(self) -> Result<Vec<PathBuf>, Missing> {
        let command = self.installed("command")?;
        let words = command.as_array().into_iter().flatten();
        let words: Vec<PathBuf> = words.filter_map(Value::as_str).map(PathBuf::from).collect();
        if words.is_empty() { Err(Missing::One { name: self.name() }) } else { Ok(words) }
    }

    /// The version that it reported when it was installed.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn version(self) -> Result<String, Missing> {
        let version = self.installed("version")?;
        version.as_str().map(str::to_owned).ok_or(Missing::One { name: self.name() })
    }

    fn installed(self, what: &str) -> Result<Value, Missing> {
        let text = fs::read_to_string(folder().join("installed.json")).map_err(Missing::Everything)?;
        let installed: Value = serde_json::from_str(&text).map_err(|error| Missing::Everything(error.into()))?;
        let found = installed.get(self.name()).and_then(|agent| agent.get(what));
        found.cloned().ok_or(Missing::One { name: self.name() })
    }

    /// The step of a script that runs a shell command, by the agent's own name for that tool.
    pub fn shell_call(self, command: &str) -> String {
        let (name, arguments) = match self {
            Agent::Claude | Agent::ClaudeAcp => ("Bash", json!({ "command": command })),
            Agent::Codex | Agent::CodexAcp => ("exec_command", json!({ "cmd": command })),
            Agent::Gemini | Agent::Qwen => ("run_shell_command", json!({ "command": command })),
            Agent::Opencode => ("bash", json!({ "command": command, "description": "proves it" })),
        };
        format!("tool {name} {arguments}")
    }

    /// Its arguments when its tools may run without asking.
    pub fn allowing(self) -> &'static [&'static str] {
        match self {
            Agent::Claude | Agent::ClaudeAcp => &["--allowedTools", "Bash"],
            Agent::Codex | Agent::CodexAcp => &["--dangerously-bypass-approvals-and-sandbox"],
            Agent::Gemini | Agent::Qwen => &["--yolo"],
            Agent::Opencode => &[],
        }
    }

    /// Writes what the agent needs into an empty home folder and returns its whole environment. `url` is
    /// [`Server::url`](crate::Server::url).
    ///
    /// Everything else is the agent's default. Only what needs the network is switched off: updates, lists of models,
    /// statistics, downloads.
    ///
    /// # Errors
    /// When the home folder cannot be written.
    pub fn furnish(self, home: &Path, url: &str) -> io::Result<Vec<(&'static str, String)>> {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
        // Agents put reports and their tools' output there. It is deleted with the home.
        let temporary = home.join("tmp");
        fs::create_dir_all(&temporary)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut environment = vec![("HOME", text(home)), ("TMPDIR", text(&temporary)), ("PATH", path)];
        let mut set = |name: &'static str, value: &str| environment.push((name, value.to_owned()));
        if matches!(self, Agent::Claude | Agent::ClaudeAcp | Agent::Opencode) {
            // Their JavaScript engine without its optimising compiler and without collecting garbage: a test ends before
            // either has paid off. Processor time of a turn: claude 0.38 s, 0.48 with the collector, opencode 1.44 s and
            // 1.94 (medians of 7 and 4); opencode then takes 610 MB instead of 360.
            set("BUN_JSC_useDFGJIT", "0");
            set("BUN_JSC_useGC", "0");
        }
        if matches!(self, Agent::Gemini | Agent::Qwen | Agent::ClaudeAcp) {
            // Node keeps there what it has compiled, for the next start of the same version. Processor time of a turn:
            // gemini 0.69 s instead of 0.83, qwen 0.71 instead of 0.86 (medians of 5).
            set("NODE_COMPILE_CACHE", &text(&folder().join("node-compile-cache")));
        }
        match self {
            Agent::Claude | Agent::ClaudeAcp => {
                set("ANTHROPIC_BASE_URL", url);
                set("ANTHROPIC_API_KEY", KEY);
                set("DISABLE_AUTOUPDATER", "1");
                set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            }
            Agent::Codex | Agent::CodexAcp => {
                set("SCRIPTED_KEY", KEY);
                // Its server would look for updates whatever the settings say. No process listens on that port.
                set("HTTPS_PROXY", "http://127.0.0.1:9");
                write(&home.join(".codex/config.toml"), &codex_config(url))?;
            }
            Agent::Gemini => {
                set("GEMINI_API_KEY", KEY);
                set("GOOGLE_GEMINI_BASE_URL", url);
                set("GEMINI_CLI_TRUST_WORKSPACE", "true");
                write(&home.join(".gemini/settings.json"), &gemini_settings().to_string())?;
            }
            Agent::Opencode => {
                set("OPENCODE_DISABLE_AUTOUPDATE", "true");
                set("OPENCODE_DISABLE_MODELS_FETCH", "true");
                set("OPENCODE_DISABLE_LSP_DOWNLOAD", "true");
                // Instead of its built-in list of all models of all makers, which takes two of the five seconds of
                // processor time of a turn.
                let models = home.join(".config/opencode-models.json");
                write(&models, "{}")?;
                set("OPENCODE_MODELS_PATH", &text(&models));
                let folder = home.join(".config/opencode");
                write(&folder.join("opencode.json"), &opencode_config(url).to_string())?;
                self.skip_install(&folder)?;
            }
            Agent::Qwen => {
                set("OPENAI_API_KEY", KEY);
                set("OPENAI_BASE_URL", &format!("{url}/v1"));
                set("OPENAI_MODEL", "scripted");
                write(&home.join(".qwen/settings.json"), &qwen_settings().to_string())?;
            }
        }
        Ok(environment)
    }

    /// Opencode installs a package for plugins into its folder of settings, from the network, unless it finds the
    /// package there (measured: 95 MB in an empty home, 12 s of processor time instead of 5 for a first turn). Our
    /// plugin imports nothing of it.
    fn skip_install(self, folder: &Path) -> io::Result<()> {
        let dependencies = json!({ "@opencode-ai/plugin": self.version().map_err(io::Error::other)? });
        let lock = json!({ "lockfileVersion": 3, "packages": { "": { "dependencies": dependencies } } });
        write(&folder.join("package.json"), &json!({ "dependencies": dependencies }).to_string())?;
        write(&folder.join("package-lock.json"), &lock.to_string())?;
        fs::create_dir_all(folder.join("node_modules"))
    }

    /// Marks a folder as trusted in a prepared home, so that a terminal opens on the prompt and not on dialogs.
    ///
    /// # Errors
    /// When the home folder cannot be written.
    pub fn trust(self, home: &Path, folder: &Path) -> io::Result<()> {
        let folder = folder.to_string_lossy();
        match self {
            Agent::Claude => write(&home.join(".claude.json"), &claude_trust(&folder).to_string()),
            Agent::Codex => {
                // A JSON string is a valid TOML string.
                let trusted = format!("[projects.{}]\ntrust_level = \"trusted\"\n", json!(folder));
                let mut config = fs::OpenOptions::new().append(true).open(home.join(".codex/config.toml"))?;
                config.write_all(trusted.as_bytes())
            }
            // For gemini the environment does it; the others do not ask.
            Agent::Gemini | Agent::Opencode | Agent::Qwen | Agent::ClaudeAcp | Agent::CodexAcp => Ok(()),
        }
    }

    /// The agent without arguments, in a clean environment with this home.
    ///
    /// # Errors
    /// When it is not installed, or the home folder cannot be written.
    pub fn command(self, home: &Path, url: &str) -> io::Result<Command> {
        let program = self.program().map_err(io::Error::other)?;
        let (first, rest) = program.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(first);
        command.args(rest).env_clear().envs(self.furnish(home, url)?);
        if self == Agent::Gemini {
            // Without this, the process that is started here is a launcher, and the agent is its child.
            command.env("GEMINI_CLI_NO_RELAUNCH", "true");
        }
        if self == Agent::Qwen {
            command.env("QWEN_CODE_NO_RELAUNCH", "true");
        }
        Ok(command)
    }
}

/// Where `cargo xtask agents` puts them: below the workspace, also when cargo builds elsewhere.
pub fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../../target/agents")
}

/// Only what needs the network is switched off. Whether it shares a server in a terminal is left at its default.
fn codex_config(url: &str) -> String {
    format!(
        "model = \"scripted\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
         [analytics]\nenabled = false\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n\
         env_key = \"SCRIPTED_KEY\"\n"
    )
}

fn claude_trust(folder: &str) -> Value {
    json!({
        "hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY], "rejected": []},
        "projects": {folder: {"hasTrustDialogAccepted": true}},
    })
}

fn gemini_settings() -> Value {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
    })
}

/// Only what needs the network, and background requests to the model, are switched off.
fn qwen_settings() -> Value {
    json!({
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
        "privacy": {"usageStatisticsEnabled": false},
        "memory": {"enableManagedAutoMemory": false},
    })
}

fn opencode_config(url: &str) -> Value {
    json!({
        "autoupdate": false, "share": "disabled", "model": "scripted/large", "small_model": "scripted/small",
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
            "models": {"large": {"name": "large", "tool_call": true}, "small": {"name": "small"}},
        }},
    })
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text)
}
