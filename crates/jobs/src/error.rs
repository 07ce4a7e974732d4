//! What ends a driver before its job is done.

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job is to stop. Its children are ended by the framework.
    #[error("the job is to stop")]
    Stopped,
    /// The engine could not do it.
    #[error(transparent)]
    Engine(Box<ostler_engine::Error>),
    /// What the job was told cannot be read.
    #[error("the description of the job cannot be read: {0}")]
    Spec(serde_json::Error),
    /// A step was written down by another version, in another form.
    #[error("the step {key:?} in the record of the job cannot be read: {error}")]
    Step {
        /// Which one.
        key: String,
        /// Why.
        error: serde_json::Error,
    },
    /// No version of ostler that is installed knows it.
    #[error("this version of ostler does not know the job {0:?}")]
    UnknownKind(String),
    /// A session that a job works on is gone.
    #[error("the session of {0} is gone")]
    Gone(String),
    /// The system refused.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl From<ostler_engine::Error> for JobError {
    fn from(error: ostler_engine::Error) -> JobError {
        JobError::Engine(Box::new(error))
    }
}

impl JobError {
    /// Whether the same step may be possible another time: the disk is full, a file cannot be read, the system refuses.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        use ostler_engine::{Error, LaunchError};
        match self {
            JobError::System(_) => true,
            JobError::Engine(error) => {
                matches!(
                    **error,
                    Error::System(_) | Error::Store(_) | Error::DiskFull | Error::NoKeeper { .. }
                        // Its launch was killed half-way. Repeated with the same id, it is done once.
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
