//! Faults while ostler works with git: no work becomes unreachable, the repository stays intact, and what a person has
//! in the main working tree is as before or as the finished operation leaves it.
//!
//! * [`world`]: a repository of a person with unfinished work, on a disk of its own, and sessions with work in their
//!   trees.
//! * [`operation`]: what is done. Each operation is repeated after the fault, and has to succeed then.
//! * [`turns`]: what is specific to snapshots of turns and to rewinding.
//! * [`fault`]: what happens during the operation.
//! * [`verdict`]: what must hold afterwards.

pub mod fault;
pub mod operation;
mod turns;
mod verdict;
mod world;

use crate::random::Random;
use fault::Fault;
use operation::Operation;
use std::path::Path;
use world::World;

/// How many faults one repository goes through: what a fault has left is there when the next one comes.
pub const IN_ONE_WORLD: u64 = 10;

/// A fault during an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Played {
    pub operation: Operation,
    pub fault: Fault,
    /// False: the operation ended before there was anything to kill.
    pub injected: bool,
}

/// Injects this many faults in one repository. Panics when a promise does not hold.
pub fn play(program: &Path, operations: &[Operation], seed: u64, faults: u64, tell: &mut dyn FnMut(Played)) {
    let mut random = Random::new(seed);
    let mut world = World::new(program);
    for number in 0..faults {
        let operation = random.pick(operations);
        let fault = random.pick(&Fault::possible(operation));
        world.prepare(operation, number, &mut random);
        let before = world.ledger();
        let injected = world.under_fault(operation, fault, &mut random);
        let what = format!("{} with {} (fault {number} of seed {seed})", operation.name(), fault.name());
        world.recover(operation, &what);
        world.judge(&before, operation, &what);
        world.repeat(operation, &what);
        world.judge(&before, operation, &format!("{what}, repeated"));
        tell(Played { operation, fault, injected });
    }
}
