//! Hand-written captures and their analyses.

mod both_ends;
mod flows;
mod info;
mod mutated;
mod packets;
mod remote_sender;
mod turns;
