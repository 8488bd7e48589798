//! The place of a value in an experiment.

use std::fmt;

/// A path through tables and lists, printed like `flows[1].cc`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl<'a> Place<'a> {
    pub fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    pub fn index(&'a self, index: usize) -> Self {
        Self::Index(self, index)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Place::Key(parent, key) => {
                parent.fmt(f)?;
                if !matches!(parent, Place::Root) {
                    f.write_str(".")?;
                }
                let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if !key.is_empty() && key.chars().all(is_bare) {
                    f.write_str(key)
                } else {
                    write!(f, "\"{}\"", key.escape_debug())
                }
            }
        }
    }
}
