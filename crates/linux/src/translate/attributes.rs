//! Netlink attributes: a length and a type of 16 bits each, the content, padding to 4 bytes.

/// A list of attributes under construction, or the content of a nested one.
#[derive(Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    pub fn bytes(mut self, kind: u16, content: &[u8]) -> Self {
        let length = (4 + content.len()) as u16;
        self.0.extend(length.to_le_bytes());
        self.0.extend(kind.to_le_bytes());
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub fn u32(self, kind: u16, value: u64) -> Self {
        self.bytes(kind, &(value.min(u64::from(u32::MAX)) as u32).to_le_bytes())
    }

    /// Options in the form of a structure instead of a list of attributes.
    pub fn of_struct(values: &[u64]) -> Self {
        let short = |value: &u64| (*value).min(u64::from(u32::MAX)) as u32;
        Self(values.iter().flat_map(|value| short(value).to_le_bytes()).collect())
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_but_their_length_is_not() {
        let bytes = Attributes::default().bytes(3, &[1, 2, 3, 4, 5]).u32(1, 7).finish();
        assert_eq!(bytes, [9, 0, 3, 0, 1, 2, 3, 4, 5, 0, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0]);
    }
}
