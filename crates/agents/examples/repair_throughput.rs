//! How fast a transcript is examined and repaired, and how much memory that needs.
//!
//! `cargo run --release -p ostler-agents --example repair_throughput FOLDER [MEGABYTES]` makes a transcript of claude
//! in the folder, with a torn end, a broken line, a call without a result and two writers, and prints a line of JSON.

use ostler_agents::repair::{Format, examine};
use ostler_transcript::Branches;
use serde_json::json;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let megabytes: u64 = arguments.next().map_or(Ok(1000), |number| number.parse())?;
    let (damaged, repaired) = (Path::new(&folder).join("damaged.jsonl"), Path::new(&folder).join("repaired.jsonl"));
    let lines = make(&damaged, megabytes * 1_000_000)?;
    let size = std::fs::metadata(&damaged)?.len();

    let (start, before) = (Instant::now(), cpu_seconds()?);
    let source = File::open(&damaged)?;
    let claude = Format::of_agent("claude").ok_or("no format")?;
    let examination = examine(claude, &source, Branches::Join)?;
    let (looked, worked_to_look) = (start.elapsed(), cpu_seconds()? - before);
    let mut target = BufWriter::with_capacity(1 << 20, File::create(&repaired)?);
    examination.edits.apply(&source, &mut target)?;
    target.flush()?;
    let (written, worked_to_write) = (start.elapsed(), cpu_seconds()? - before);
    let start = Instant::now();
    let again = examine(claude, File::open(&repaired)?, Branches::Join)?;
    let verified = start.elapsed();

    let per = |seconds: f64| (size as f64 / 1e6 / seconds).round();
    let rate = |time: std::time::Duration| per(time.as_secs_f64());
    println!(
        "{}",
        json!({
            "bytes": size, "lines": lines, "findings": examination.findings.len(), "left": again.findings.len(),
            "look_mb_s": rate(looked), "look_and_write_mb_s": rate(written), "verify_mb_s": rate(verified),
            "look_mb_per_cpu_s": per(worked_to_look), "look_and_write_mb_per_cpu_s": per(worked_to_write),
            "peak_kib": peak_kib()?,
        })
    );
    std::fs::remove_file(damaged)?;
    std::fs::remove_file(repaired)?;
    Ok(())
}

/// The processor time of this process, which other work on the machine does not change.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field).map_or(Ok(0), |text| text.parse::<u32>());
    Ok(f64::from(ticks(11)? + ticks(12)?) / 100.0)
}

/// The peak memory of this process.
fn peak_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Turns of a prompt, two parallel tools with output of some kilobytes, and an answer.
fn make(path: &Path, size: u64) -> Result<u64, Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let (mut written, mut lines, mut number) = (0, 0, 0_u64);
    let uuid = |number: u64| format!("{number:08x}-0000-4000-8000-000000000000");
    let words = "the quick brown fox jumps over the lazy dog\\n\\t\\\"quoted\\\" and so on, ".repeat(40);
    let mut write = |parent: u64, own: u64, kind: &str, message: String| -> std::io::Result<u64> {
        let parent = if parent == 0 { "null".to_owned() } else { format!("\"{}\"", uuid(parent)) };
        let line = format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"type\":\"{kind}\",\"message\":{message},\"uuid\":\"{}\",\
             \"timestamp\":\"2026-11-15T07:00:00.000Z\",\"sessionId\":\"s\",\"cwd\":\"/w\",\"version\":\"2.1.197\"}}\n",
            uuid(own)
        );
        lines += 1;
        // One line in the middle is broken.
        let line = if lines == 1000 { line.replacen("\"uuid\"", "\"uu", 1) } else { line };
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
        Ok(written)
    };
    let text = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
    let call = |own: u64, answer: u64| {
        format!(
            "{{\"id\":\"msg_{answer}\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"tool_{own}\",\"name\":\"Bash\",\"input\":{{}}}}]}}"
        )
    };
    let result = |own: u64| {
        format!(
            "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"tool_{own}\",\"content\":\"{words}\"}}]}}"
        )
    };
    loop {
        let at = number + 1;
        write(number, at, "user", text("go on"))?;
        write(at, at + 1, "assistant", call(at + 1, at))?;
        write(at + 1, at + 2, "assistant", call(at + 2, at))?;
        write(at + 1, at + 3, "user", result(at + 1))?;
        if at != 5001 {
            // One result is missing.
            write(at + 2, at + 4, "user", result(at + 2))?;
        }
        let parent = if at == 5001 { at + 3 } else { at + 4 };
        let total = write(
            parent,
            at + 5,
            "assistant",
            format!("{{\"id\":\"msg_{}\",\"content\":[{{\"type\":\"text\",\"text\":\"{words}\"}}]}}", at + 5),
        )?;
        number = at + 5;
        if total > size {
            break;
        }
    }
    // Two writers at the end; the last line is torn.
    for (parent, own) in [(number, number + 1), (number, number + 2)] {
        write(parent, own, "user", text("both"))?;
    }
    for (parent, own) in [(number + 1, number + 3), (number + 2, number + 4)] {
        write(parent, own, "assistant", format!("{{\"id\":\"msg_{own}\",\"content\":[]}}"))?;
    }
    out.write_all(b"{\"parentUuid\":\"torn")?;
    out.flush()?;
    Ok(lines)
}
