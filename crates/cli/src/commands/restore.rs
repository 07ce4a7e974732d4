use crate::args::Many;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
pub fn run(_context: &Context, _args: &Many) -> Result<Code> {
    Err(Failure::ours("not built yet"))
}
