//! Translates a plan into parts of the engine.
//!
//! | file | translates |
//! |---|---|
//! | `lanes` | a direction of a link |
//! | `queues` | a queue discipline |
//! | `losses` | a loss model |

pub(crate) mod lanes;
mod losses;
pub(crate) mod queues;
