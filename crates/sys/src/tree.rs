//! Which process descends from which, at one moment.

use crate::process::{Identity, Stat};
use crate::process_table;
use std::collections::{HashMap, HashSet};
use std::io;

/// Every process of the machine, read once.
#[derive(Debug)]
pub struct Processes {
    all: HashMap<i32, Stat>,
    children: HashMap<i32, Vec<i32>>,
}

impl Processes {
    /// Reads the process table. A process that ends in between is left out.
    pub fn look() -> io::Result<Processes> {
        let mut all = HashMap::new();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for pid in process_table::pids()? {
            // A process that vanished or may not be looked at is not below us.
            if let Ok(Some(stat)) = Stat::read(pid) {
                children.entry(stat.parent).or_default().push(pid);
                all.insert(pid, stat);
            }
        }
        Ok(Processes { all, children })
    }

    /// All processes below `roots`, without the roots themselves, and without those that are `foreign` and everything
    /// below them. Dead processes are left out, but not their children.
    pub fn below(&self, roots: &[i32], foreign: impl Fn(&Stat) -> bool) -> Vec<Identity> {
        let mut seen: HashSet<i32> = roots.iter().copied().collect();
        let mut open: Vec<i32> = roots.to_vec();
        let mut found = Vec::new();
        while let Some(pid) = open.pop() {
            for &child in self.children.get(&pid).into_iter().flatten() {
                let Some(stat) = self.all.get(&child) else {
                    continue;
                };
                if !seen.insert(child) || foreign(stat) {
                    continue;
                }
                if !stat.is_zombie() {
                    found.push(stat.identity());
                }
                open.push(child);
            }
        }
        found
    }
}
