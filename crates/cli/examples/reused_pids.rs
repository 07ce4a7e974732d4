//! Plays the fault of reused pids. A test starts it inside a pid namespace of its own: `reused_pids --reused-pids OSTLER`.

use ostler_chaos::reused;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, program] = words.as_slice() else { return ExitCode::from(2) };
    if word != reused::WORD {
        return ExitCode::from(2);
    }
    reused::play(program.as_ref());
    ExitCode::SUCCESS
}
