//! Whole connections over a wire that the test controls.

mod accurate;
mod acks;
mod alive;
mod arrivals;
mod classics;
mod closing;
mod corners;
mod fast_open;
mod flow_control;
mod marks;
mod memory;
mod modern_acks;
mod modern_loss;
mod modern_timers;
mod modern_undo;
mod modern_window;
mod opening;
mod pacing;
mod path_mtu;
mod peer;
mod rate;
mod repair;
mod sending;
mod small_queue;
mod stream;
mod world;
