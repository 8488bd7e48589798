//! From a plan to what the engine is made of.
//!
//! | file | from, to |
//! |---|---|
//! | `lanes` | a direction of a link, the engine's lane |
//! | `queues` | a queue discipline |
//! | `losses` | losses on the way |

pub(crate) mod lanes;
mod losses;
pub(crate) mod queues;
