//! Asks git what is ignored: one process for a whole snapshot, started at the first question.

use super::store::TurnStore;
use super::tree::WorkingTree;
use crate::git::fields;
use crate::{GitError, Result};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin, ChildStdout};

/// This many bytes are asked at once. Both pipes hold more, so neither side waits for the other.
const AT_ONCE: usize = 12 * 1024;

/// A running `git check-ignore`.
pub(super) struct Ignored<'a> {
    tree: &'a WorkingTree,
    running: Option<Running>,
}

struct Running {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Git exits at the end of its input, which is closed only after this function. So it is killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl<'a> Ignored<'a> {
    pub fn new(tree: &'a WorkingTree) -> Ignored<'a> {
        Ignored { tree, running: None }
    }

    /// Which of these paths, relative to the top of the tree, are ignored, whether or not they are tracked.
    pub fn ask(&mut self, paths: &[&[u8]]) -> Result<Vec<bool>> {
        let mut answers = Vec::with_capacity(paths.len());
        let mut rest = paths;
        while !rest.is_empty() {
            let mut size = 0;
            let fitting = rest.iter().take_while(|path| {
                size += path.len() + 1;
                size <= AT_ONCE
            });
            let (now, later) = rest.split_at(fitting.count().max(1));
            self.ask_some(now, &mut answers)?;
            rest = later;
        }
        Ok(answers)
    }

    fn ask_some(&mut self, paths: &[&[u8]], answers: &mut Vec<bool>) -> Result<()> {
        if self.running.is_none() {
            let words = ["check-ignore", "--stdin", "-z", "--verbose", "--non-matching", "--no-index"];
            let mut process = self.tree.git.start(&self.tree.top, words)?;
            let (Some(questions), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
                return Err(failed("it has no pipes"));
            };
            self.running = Some(Running { process, questions, answers: BufReader::new(answers) });
        }
        let Some(running) = &mut self.running else { return Err(failed("it is not running")) };
        let mut question = Vec::new();
        for path in paths {
            // A path that begins with a colon would be read as a pathspec with special meaning.
            question.extend_from_slice(b"./");
            question.extend_from_slice(path);
            question.push(0);
        }
        let asked = running.questions.write_all(&question).and_then(|()| running.questions.flush());
        asked.map_err(|error| failed(&error.to_string()))?;
        for _ in paths {
            // The four fields of an answer: file, line, pattern, path.
            let mut fields: [Vec<u8>; 4] = Default::default();
            for field in &mut fields {
                let read = running.answers.read_until(0, field).map_err(|error| failed(&error.to_string()))?;
                if read == 0 || field.pop() != Some(0) {
                    return Err(failed("it ended before it had answered"));
                }
            }
            let pattern = &fields[2];
            answers.push(!pattern.is_empty() && !pattern.starts_with(b"!"));
        }
        Ok(())
    }
}

/// Folder in a store for the `.gitignore` files of a snapshot, while git is asked about them. The name begins with
/// `tmp_`, so `tidy` removes what a killed process has left.
const RULES: &str = "tmp_ignored";

impl TurnStore {
    /// Which of these paths are ignored by the rules that the tree has now, or by those of a snapshot.
    pub(super) fn ignored_now_or_at(&self, tree: &WorkingTree, snapshot: &str, paths: &[&[u8]]) -> Result<Vec<bool>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let now = Ignored::new(tree).ask(paths)?;
        let top = self.folder.join(RULES);
        let ask = || -> Result<Vec<bool>> {
            std::fs::create_dir_all(&top).map_err(GitError::io(&top))?;
            let listed =
                self.git.run(&self.folder, ["ls-tree", "-r", "-z", "--format=%(objectname) %(path)", snapshot])?;
            for line in fields(&listed).filter(|line| line.ends_with(b".gitignore")) {
                let mut parts = line.splitn(2, |&byte| byte == b' ');
                let (Some(object), Some(path)) = (parts.next(), parts.next()) else { continue };
                let file = top.join(OsStr::from_bytes(path));
                if file.file_name() != Some(OsStr::new(".gitignore")) {
                    continue;
                }
                let rules = self
                    .git
                    .run(&self.folder, [OsStr::new("cat-file"), OsStr::new("blob"), OsStr::from_bytes(object)])?;
                let folder = file.parent().unwrap_or(&top);
                std::fs::create_dir_all(folder)
                    .and_then(|()| std::fs::write(&file, rules))
                    .map_err(GitError::io(&file))?;
            }
            let git = tree.git.with("GIT_DIR", &tree.own).with("GIT_WORK_TREE", &top);
            let then = WorkingTree { git, top: top.clone(), ..tree.clone() };
            Ignored::new(&then).ask(paths)
        };
        let then = ask();
        let _ = std::fs::remove_dir_all(&top);
        Ok(now.into_iter().zip(then?).map(|(now, then)| now || then).collect())
    }
}

fn failed(words: &str) -> GitError {
    GitError::Failed { what: "check-ignore".to_owned(), words: words.to_owned() }
}
