//! `cargo xtask agents`: installs the real agents, pinned in agents/package-lock.json, below target/agents and nowhere
//! else.
//!
//! Tests against the real programs are useful only when everybody runs the same versions. So they come from a lock
//! file, no script of a package runs, npm's cache and the agents' home are our own, and an agent counts as installed
//! once it has printed the pinned version itself. A second run with the same lock file does nothing and is quick.
//!
//! Node is among the packages too, so that agents in JavaScript run with the same version everywhere. A turn of gemini
//! takes a quarter less processor time with Node 24 than with 20, one of qwen a tenth (1.37 and 1.00 s, 1.15 and 1.03 s).
//!
//! The agent itself must be started: with a launcher in between, its process id, its lock and its signals belong to
//! another process. What npm installs:
//!
//! * **claude**: the linked command is a stub that prints an error until the postinstall script replaces it. The agent
//!   is the native `claude-code-linux-x64/claude`.
//! * **codex**: the linked command is a launcher that becomes the native binary where Node has `process.execve` (22.15
//!   and later), and spawns it elsewhere. The agent is `codex-linux-x64/vendor/<triple>/bin/codex`; the launcher adds
//!   only two variables about how it is updated.
//! * **gemini**: JavaScript that starts itself once more and ignores SIGINT, SIGTERM and SIGHUP meanwhile, unless
//!   `GEMINI_CLI_NO_RELAUNCH` is set. The agent is the same file with that variable set.
//! * **opencode**: `opencode-ai` has a stub like claude's, and platform packages of which some are missing in some
//!   registries, which `npm ci` refuses. So we pin the platform's package: the native
//!   `opencode-linux-x64/bin/opencode`.
//! * **qwen**: JavaScript, and the agent itself; with `QWEN_CODE_NO_RELAUNCH` it does not start itself once more.
//! * **claude-code-acp**: JavaScript, and the agent itself. It starts the `cli.js` of the `claude-agent-sdk` that it
//!   depends on, not the claude above.
//! * **codex-acp**: the linked command is a launcher that waits for the native `codex-acp-linux-x64/bin/codex-acp`,
//!   which has its own codex built in, and no bubblewrap: its sandbox needs the one of the system.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::{apt, workspace};

/// The slowest takes two seconds on an idle machine with two cores.
const LIMIT: Duration = Duration::from_secs(60);

/// The first message of the Agent Client Protocol. The adapters have no `--version`, but their answer contains it.
const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#;

struct Agent {
    name: &'static str,
    /// Below node_modules, with CPU for node's name of the processor and TRIPLE for Rust's name of the machine.
    files: &'static [&'static str],
    runs: Runs,
    tells: Tells,
    /// The package with the pinned version. It may contain CPU too.
    package: &'static str,
}

enum Runs {
    Native,
    ThroughNode,
}

/// How an agent is asked for its version.
enum Tells {
    WhenAsked,
    WhenInitialized,
}

/// Runs the agents in JavaScript. Its package puts it among the launchers, where their first lines find it.
const NODE: &str = "node-linux-CPU/bin/node";

const AGENTS: [Agent; 7] = [
    Agent {
        name: "claude",
        files: &["@anthropic-ai/claude-code-linux-CPU/claude", "@anthropic-ai/claude-code-linux-CPU-musl/claude"],
        runs: Runs::Native,
        tells: Tells::WhenAsked,
        package: "@anthropic-ai/claude-code",
    },
    Agent {
        name: "codex",
        files: &["@openai/codex-linux-CPU/vendor/TRIPLE/bin/codex"],
        runs: Runs::Native,
        tells: Tells::WhenAsked,
        package: "@openai/codex",
    },
    Agent {
        name: "gemini",
        files: &["@google/gemini-cli/bundle/gemini.js"],
        runs: Runs::ThroughNode,
        tells: Tells::WhenAsked,
        package: "@google/gemini-cli",
    },
    Agent {
        name: "opencode",
        files: &["opencode-linux-CPU/bin/opencode"],
        runs: Runs::Native,
        tells: Tells::WhenAsked,
        package: "opencode-linux-CPU",
    },
    Agent {
        name: "qwen",
        files: &["@qwen-code/qwen-code/cli.js"],
        runs: Runs::ThroughNode,
        tells: Tells::WhenAsked,
        package: "@qwen-code/qwen-code",
    },
    Agent {
        name: "claude-code-acp",
        files: &["@zed-industries/claude-code-acp/dist/index.js"],
        runs: Runs::ThroughNode,
        tells: Tells::WhenInitialized,
        package: "@zed-industries/claude-code-acp",
    },
    Agent {
        name: "codex-acp",
        files: &["@zed-industries/codex-acp-linux-CPU/bin/codex-acp"],
        runs: Runs::Native,
        tells: Tells::WhenInitialized,
        package: "@zed-industries/codex-acp",
    },
];

pub fn run(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.first() {
        bail!("`agents` takes no arguments, not even {unknown}");
    }
    // Below the workspace even where cargo builds elsewhere: half a gigabyte that all build folders share.
    let folder = workspace::root().join("target/agents");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let lock = fs::File::create(folder.join("lock")).context("cannot make a lock file")?;
    lock.lock().context("cannot wait for another `cargo xtask agents`")?;

    let installed = match already(&folder)? {
        Some(installed) => installed,
        None => install(&folder)?,
    };
    show(&installed);
    Ok(())
}

/// What is installed, if it matches the lock file and still exists. The record is written last, so it is complete.
fn already(folder: &Path) -> Result<Option<Map<String, Value>>> {
    let read = |file: PathBuf| fs::read_to_string(file).ok();
    let wanted = read(pinned("package-lock.json")).context("agents/package-lock.json is missing")?;
    if read(folder.join("package-lock.json")).as_ref() != Some(&wanted) {
        return Ok(None);
    }
    let Some(record) = read(folder.join("installed.json")) else { return Ok(None) };
    let Ok(Value::Object(installed)) = serde_json::from_str(&record) else { return Ok(None) };
    let there = AGENTS.iter().all(|agent| {
        command_of(&installed, agent.name).is_some_and(|words| words.iter().all(|word| Path::new(word).is_file()))
    });
    Ok(there.then_some(installed))
}

/// The versions that the installed agents printed.
pub fn versions() -> Result<BTreeMap<String, String>> {
    let record = workspace::root().join("target/agents/installed.json");
    let installed: Map<String, Value> = serde_json::from_str(&fs::read_to_string(record).context("no agents")?)?;
    let told = installed.into_iter().filter_map(|(name, one)| Some((name, one.get("version")?.as_str()?.to_owned())));
    Ok(told.collect())
}

fn pinned(name: &str) -> PathBuf {
    workspace::root().join("agents").join(name)
}

fn command_of<'a>(installed: &'a Map<String, Value>, name: &str) -> Option<Vec<&'a str>> {
    installed.get(name)?.get("command")?.as_array()?.iter().map(Value::as_str).collect()
}

fn install(folder: &Path) -> Result<Map<String, Value>> {
    let record = folder.join("installed.json");
    match fs::remove_file(&record) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).context("cannot remove the old record");
        }
        Ok(()) | Err(_) => {}
    }
    for name in ["package.json", "package-lock.json"] {
        fs::copy(pinned(name), folder.join(name)).with_context(|| format!("cannot copy agents/{name}"))?;
    }
    let mut npm = Command::new(apt::on_path("npm").context("npm is not installed")?);
    npm.current_dir(folder)
        .args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--prefer-offline",
            "--cache",
        ])
        .arg(folder.join("npm-cache"));
    workspace::run_visibly(&mut npm)?;

    let home = folder.join("home");
    fs::create_dir_all(&home).context("cannot make the agents' home")?;
    let node = folder.join("node_modules").join(for_this_machine(NODE)?);
    let lock: Value = serde_json::from_str(&fs::read_to_string(folder.join("package-lock.json"))?)?;
    let mut installed = Map::new();
    for agent in &AGENTS {
        let version = agent.pinned_version(&lock)?;
        let mut words = Vec::new();
        if let Runs::ThroughNode = agent.runs {
            words.push(node.clone());
        }
        words.push(agent.file(folder)?);
        agent.prove(&words, &version, &home).with_context(|| format!("{} does not run", agent.name))?;
        installed.insert(agent.name.to_owned(), json!({"version": version, "command": words}));
    }
    fs::write(&record, format!("{:#}\n", Value::Object(installed.clone()))).context("cannot write the record")?;
    Ok(installed)
}

impl Agent {
    fn pinned_version(&self, lock: &Value) -> Result<String> {
        let package = format!("node_modules/{}", for_this_machine(self.package)?);
        let version = lock.get("packages").and_then(|all| all.get(&package)).and_then(|one| one.get("version"));
        let version = version.and_then(Value::as_str).with_context(|| format!("{package} is not in the lock file"))?;
        Ok(version.to_owned())
    }

    fn file(&self, folder: &Path) -> Result<PathBuf> {
        for file in self.files {
            let file = folder.join("node_modules").join(for_this_machine(file)?);
            if file.is_file() {
                return Ok(file);
            }
        }
        bail!("{} has nothing for this machine in its packages", self.name)
    }

    /// Starts it in a clean environment and waits until it has printed its version.
    fn prove(&self, words: &[PathBuf], version: &str, home: &Path) -> Result<()> {
        let (program, arguments) = words.split_first().context("nothing to start")?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("HOME", home).envs(QUIET).current_dir(home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let hello = match self.tells {
            Tells::WhenAsked => {
                command.arg("--version");
                None
            }
            Tells::WhenInitialized => Some(INITIALIZE),
        };
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let told = listen(&mut child, hello, version);
        // The adapters run until they are killed. The others have exited, and killing them only returns an error.
        let _ = child.kill();
        child.wait().context("cannot wait for it")?;
        told
    }
}

/// No updates, no telemetry, no models or plugins fetched, no second process.
const QUIET: [(&str, &str); 6] = [
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ("OPENCODE_DISABLE_AUTOUPDATE", "true"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "true"),
    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "true"),
];

/// Reads the agent's output until it contains the version.
fn listen(child: &mut Child, hello: Option<&str>, version: &str) -> Result<()> {
    let stdin = child.stdin.take();
    if let (Some(hello), Some(mut stdin)) = (hello, stdin.as_ref()) {
        writeln!(stdin, "{hello}").context("cannot speak to it")?;
    }
    let stdout = child.stdout.take().context("no stdout")?;
    let (sender, lines) = mpsc::channel();
    // The thread ends with the agent's stdout, at the latest when the agent is killed.
    std::thread::spawn(move || {
        BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let mut said = String::new();
    loop {
        match lines.recv_timeout(LIMIT) {
            Ok(line) if line.contains(version) => return Ok(()),
            Ok(line) => said.push_str(&line),
            Err(mpsc::RecvTimeoutError::Timeout) => bail!("no word of version {version} within {LIMIT:?}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => bail!("it should be version {version} and said {said:?}"),
        }
    }
}

fn for_this_machine(template: &str) -> Result<String> {
    let (cpu, triple) = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => ("x64", "x86_64-unknown-linux-musl"),
        ("linux", "aarch64") => ("arm64", "aarch64-unknown-linux-musl"),
        (system, processor) => {
            bail!("the agents are pinned for Linux on x86_64 or aarch64, not {system} on {processor}")
        }
    };
    Ok(template.replace("CPU", cpu).replace("TRIPLE", triple))
}

fn show(installed: &Map<String, Value>) {
    println!("{:<16} {:<10} command", "agent", "version");
    for agent in &AGENTS {
        let version = installed.get(agent.name).and_then(|one| one.get("version")).and_then(Value::as_str);
        let command = command_of(installed, agent.name).unwrap_or_default().join(" ");
        println!("{:<16} {:<10} {command}", agent.name, version.unwrap_or("?"));
    }
}
