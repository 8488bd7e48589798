//! State that is allocated on first use, because most connections never need it.

use std::ops::{Deref, DerefMut};

/// A state that is allocated when it is first changed. Most connections of a large experiment only
/// receive, or are idle.
#[derive(Clone, Debug)]
pub(crate) struct OnDemand<T>(Option<Box<T>>);

/// A state that can be read before it is allocated.
pub(crate) trait AtRest: Default + 'static {
    /// The shared initial state.
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
    /// The state, if it is allocated. Does not allocate it.
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
