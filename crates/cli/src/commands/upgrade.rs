use crate::args::Upgrade;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
pub fn run(_context: &Context, _args: &Upgrade) -> Result<Code> {
    Err(Failure::ours("not built yet"))
}
