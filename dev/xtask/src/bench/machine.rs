//! The machine on which the figures were measured: without it they mean nothing.

use std::process::Command;

pub struct Machine {
    pub date: String,
    pub cores: usize,
    pub processor: String,
    pub memory_gib: f64,
    pub kernel: String,
}

pub fn describe() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| -> Option<String> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory_kib = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|total| total.split_whitespace().next()?.parse::<f64>().ok())
        .unwrap_or(0.0);
    Machine {
        date: said_by(Command::new("date").args(["-u", "+%Y-%m-%d"])),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        memory_gib: memory_kib / 1024.0 / 1024.0,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
    }
}

fn said_by(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}
