//! The file in which the host side writes the job.

use crate::failure::{Failure, Trying};
use tcplab_guest::job::{self, Job};

/// The job, as written by the host side.
pub(crate) fn read() -> Result<Job, Failure> {
    let text = std::fs::read_to_string(job::PATH).trying(|| job::PATH.into())?;
    serde_json::from_str(&text).map_err(|error| Failure::new(job::PATH, error.to_string()))
}
