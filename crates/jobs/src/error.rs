//! Errors that end a driver before its job is done.

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job is to stop. The framework ends its children.
    #[error("the job is to stop")]
    Stopped,
    /// The engine failed.
    #[error(transparent)]
    Engine(Box<ostler_engine::Error>),
    /// The description of the job cannot be read.
    #[error("the description of the job cannot be read: {0}")]
    Spec(serde_json::Error),
    /// A step was recorded by another version, in another format.
    #[error("the step {key:?} in the record of the job cannot be read: {error}")]
    Step {
        /// Which one.
        key: String,
        /// Why.
        error: serde_json::Error,
    },
    /// This version of ostler does not know the kind of job.
    #[error("this version of ostler does not know the job {0:?}")]
    UnknownKind(String),
    /// A session that the job works on does not exist any more.
    #[error("the session of {0} is gone")]
    Gone(String),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl From<ostler_engine::Error> for JobError {
    fn from(error: ostler_engine::Error) -> JobError {
        JobError::Engine(Box::new(error))
    }
}

impl JobError {
    /// Whether the same step may succeed later: the disk is full, a file cannot be read, a system call failed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        use ostler_engine::{Error, LaunchError};
        match self {
            JobError::System(_) => true,
            JobError::Engine(error) => {
                matches!(
                    **error,
                    Error::System(_) | Error::Store(_) | Error::DiskFull | Error::NoKeeper { .. }
                        // Its launch was killed half-way. A repetition with the same id does not launch it twice.
                        | Error::Launch(LaunchError::Killed | LaunchError::NotStarted(_) | LaunchError::Holder(_) | LaunchError::System(_))
                )
            }
            JobError::Stopped
            | JobError::Spec(_)
            | JobError::Step { .. }
            | JobError::UnknownKind(_)
            | JobError::Gone(_) => false,
        }
    }
}
