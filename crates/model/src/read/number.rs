//! Whole numbers, fractions and their ranges.

use super::{Definitions, Place, Read, wrong_type};
use crate::mistake::Mistake;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;
use tcplab_units::{Bytes, Duration, Rate};

/// A value that can have a range.
pub(crate) trait Bounded {
    /// The type of the range's ends.
    type Item: PartialOrd + Display + Default + Serialize;

    /// The numbers to be checked.
    fn items(&self) -> &[Self::Item];
}

macro_rules! bounded {
    ($($type:ty),+) => {$(
        impl Bounded for $type {
            type Item = Self;
            fn items(&self) -> &[Self] {
                std::slice::from_ref(self)
            }
        }
    )+};
}
bounded!(u64, f64, Duration, Bytes, Rate);

impl<T: Bounded> Bounded for Option<T> {
    type Item = T::Item;
    fn items(&self) -> &[T::Item] {
        self.as_ref().map_or(&[], T::items)
    }
}

impl Bounded for Vec<u64> {
    type Item = u64;
    fn items(&self) -> &[u64] {
        self
    }
}

impl Read for u64 {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let number = value.as_u64();
        if number.is_none() {
            mistakes.push(wrong_type(value, "a whole number, zero or more").at(at));
        }
        number
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({ "type": "integer", "minimum": 0 })
    }
}

impl Read for f64 {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let number = value.as_f64().filter(|number| number.is_finite());
        if number.is_none() {
            mistakes.push(wrong_type(value, "a number").at(at));
        }
        number
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({ "type": "number" })
    }
}
