use crate::args::Doctor;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
pub fn run(_context: &Context, _args: &Doctor) -> Result<Code> {
    Err(Failure::ours("not built yet"))
}
