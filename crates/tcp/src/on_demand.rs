//! State that most connections never need.

use std::ops::{Deref, DerefMut};

/// A state that is made when something is first changed in it: most connections of a large
/// experiment only receive, or wait.
#[derive(Clone, Debug)]
pub(crate) struct OnDemand<T>(Option<Box<T>>);

/// A state that can be read before it is made.
pub(crate) trait AtRest: Default + 'static {
    /// The state of all connections that have none of their own.
    fn at_rest() -> &'static Self;
}

impl<T> Default for OnDemand<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: AtRest> Deref for OnDemand<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(state) => state,
            None => Self::nothing(),
        }
    }
}

impl<T: AtRest> DerefMut for OnDemand<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Some(state) => state,
            empty => Self::fill(empty),
        }
    }
}

impl<T: AtRest> OnDemand<T> {
    /// The state, if there is one. Ends that send nothing ask here, so that none is made for them.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    #[cold]
    fn nothing() -> &'static T {
        T::at_rest()
    }

    #[cold]
    fn fill(empty: &mut Option<Box<T>>) -> &mut T {
        empty.get_or_insert_default()
    }
}
