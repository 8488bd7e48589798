//! Runs that are equal until a change share the state up to it.

use crate::recorder::Show;
use crate::world::World;
use tcplab_model::{Plan, Stopped, Watch};
use tcplab_tables::Produced;
use tcplab_units::{Duration, Time};

/// The common beginning of runs whose plans are equal until their change ([`Plan::beginning`]).
pub struct Beginning<'a> {
    world: World<'a>,
    at: Duration,
}

impl<'a> Beginning<'a> {
    /// The beginning of a plan that has a change and that this backend accepts.
    pub(crate) fn new(plan: &'a Plan, show: Show<'a>) -> Self {
        let at = plan.change.as_ref().map_or(plan.duration, |change| change.at);
        Self { world: World::new(plan, show), at }
    }

    /// Runs the common part of such plans; `plan` is any of them.
    ///
    /// # Errors
    /// `watch` was told to stop.
    pub fn of(plan: &'a Plan, watch: &Watch) -> Result<Self, Stopped> {
        let mut beginning = Self::new(plan, Show(None));
        beginning.run(watch)?;
        Ok(beginning)
    }

    pub(crate) fn run(&mut self, watch: &Watch) -> Result<(), Stopped> {
        self.world.begin();
        self.world.pass_time::<true>(Time::ZERO + self.at, watch)
    }

    /// Runs the rest of one of the plans, on a copy of the state.
    ///
    /// # Errors
    /// `watch` was told to stop.
    pub fn go_on(&self, plan: &Plan, watch: &Watch) -> Result<Produced, Stopped> {
        let copy = Beginning { world: self.world.beside(), at: self.at };
        copy.finish(plan, watch)
    }

    /// Runs the rest of the last of the plans.
    ///
    /// # Errors
    /// `watch` was told to stop.
    pub fn finish(self, plan: &Plan, watch: &Watch) -> Result<Produced, Stopped> {
        let after = plan.after_change();
        let mut world: World<'_> = self.world;
        if let Some(after) = &after {
            world.change(plan, after);
        }
        world.go_on(watch)
    }
}
