use crate::args::Purge;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
pub fn run(_context: &Context, _args: &Purge) -> Result<Code> {
    Err(Failure::ours("not built yet"))
}
