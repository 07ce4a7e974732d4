//! What a program did to files, in order, as strace recorded it.

use std::collections::HashMap;

/// One finished system call.
#[derive(Clone, Debug)]
pub struct Call {
    pub pid: u32,
    pub name: String,
    pub arguments: Vec<String>,
    pub result: i64,
}

impl Call {
    /// The path behind a descriptor argument: strace shows it as `3</path>`.
    #[must_use]
    pub fn path_of(&self, argument: usize) -> Option<String> {
        let text = self.arguments.get(argument)?;
        let path = &text[text.find('<')? + 1..text.rfind('>')?];
        Some(String::from_utf8_lossy(&unescape(path)).into_owned())
    }

    /// The number of a descriptor argument.
    #[must_use]
    pub fn descriptor(&self, argument: usize) -> Option<i64> {
        let text = self.arguments.get(argument)?;
        text.split('<').next()?.parse().ok()
    }

    /// A string argument.
    #[must_use]
    pub fn text(&self, argument: usize) -> Vec<u8> {
        let text = self.arguments.get(argument).map_or("", String::as_str);
        unescape(text.trim_start_matches('"').trim_end_matches('"'))
    }

    /// A path argument, relative to the folder argument before it.
    #[must_use]
    pub fn path_below(&self, folder: usize) -> Option<String> {
        let name = String::from_utf8_lossy(&self.text(folder + 1)).into_owned();
        if name.starts_with('/') { Some(name) } else { Some(format!("{}/{name}", self.path_of(folder)?)) }
    }

    #[must_use]
    pub fn number(&self, argument: usize) -> u64 {
        self.arguments.get(argument).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// Parses the output of `strace -f -y -xx`. Calls that failed, or were cut off by a kill, changed nothing.
#[must_use]
pub fn parse(text: &str) -> Vec<Call> {
    let mut begun: HashMap<u32, String> = HashMap::new();
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let (Ok(pid), rest) = (pid.parse(), rest.trim_start()) else { continue };
        let whole = if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            begun.insert(pid, start.to_owned());
            continue;
        } else if let Some(end) = rest.strip_prefix("<... ") {
            let end = end.split_once("resumed>").map_or("", |(_, end)| end);
            begun.remove(&pid).unwrap_or_default() + end
        } else {
            rest.to_owned()
        };
        calls.extend(call(pid, &whole));
    }
    calls
}

fn call(pid: u32, whole: &str) -> Option<Call> {
    let (name, rest) = whole.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(") ")?;
    let result = result.trim_start().strip_prefix("= ")?;
    let result = result.split(|c: char| !c.is_ascii_digit() && c != '-').next()?.parse().ok()?;
    let arguments = split(arguments);
    (result >= 0).then(|| Call { pid, name: name.to_owned(), arguments, result })
}

/// All strings are in hexadecimal, so a comma is never part of a string.
fn split(arguments: &str) -> Vec<String> {
    arguments.split(", ").map(|argument| argument.trim_end_matches("...").to_owned()).collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if let (b'\\', [b'x', high, low, after @ ..]) = (first, tail)
            && let Ok(byte) = u8::from_str_radix(&String::from_utf8_lossy(&[*high, *low]), 16)
        {
            bytes.push(byte);
            rest = after;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_also_when_another_process_comes_in_between() {
        let text = "7 write(3<\\x2f\\x61>, \"\\x68\\x69\", 2 <unfinished ...>\n8 fsync(4</b>) = 0\n\
                    7 <... write resumed>) = 2\n8 fsync(5</c>) = -1 EIO (x)\n9 openat(AT_FDCWD</w>, \"\\x66\", O_RDWR) = 6</w/f>\n";
        let calls = parse(text);
        let names: Vec<(u32, &str)> = calls.iter().map(|call| (call.pid, call.name.as_str())).collect();
        assert_eq!(names, [(8, "fsync"), (7, "write"), (9, "openat")]);
        assert_eq!((calls[1].path_of(0).as_deref(), calls[1].text(1)), (Some("/a"), b"hi".to_vec()));
        assert_eq!((calls[2].path_below(0).as_deref(), calls[2].result), (Some("/w/f"), 6));
    }
}
