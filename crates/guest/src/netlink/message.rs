//! Encoding of netlink messages: a header, the fixed part of the message type, attributes.

/// `NLM_F_REQUEST`, set in every message.
const REQUEST: u16 = 1;
/// `NLM_F_ACK`: request an answer on success too.
pub(crate) const ACK: u16 = 4;
/// `NLM_F_CREATE | NLM_F_EXCL`: create an object that must not exist.
pub(crate) const MAKE: u16 = 0x600;

const HEADER: usize = 16;
/// `NLMSG_ERROR`: the type of all answers.
const ANSWER: u16 = 2;
/// An error number and the header of the answered message.
const ANSWERED: usize = 4 + HEADER;
/// `NLMSGERR_ATTR_MSG`: the kernel's error text.
const WORDS: u16 = 1;

/// The longest content of an attribute, whose 16-bit length includes its own header.
pub(crate) const LONGEST_ATTRIBUTE: usize = u16::MAX as usize - ATTRIBUTE_HEADER;
const ATTRIBUTE_HEADER: usize = 4;

/// A message under construction: its header's length and sequence number are set last.
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A message of this type (`RTM_NEWLINK`) with its fixed part.
    pub fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&(REQUEST | flags).to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        let mut message = Self { bytes };
        message.fixed(fixed);
        message
    }

    /// Adds content that is not an attribute.
    pub fn fixed(&mut self, content: &[u8]) {
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    pub fn attribute(&mut self, kind: u16, content: &[u8]) {
        self.nest(kind, |message| message.bytes.extend_from_slice(content));
    }

    pub fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// Adds a zero-terminated string.
    pub fn text(&mut self, kind: u16, text: &str) {
        self.nest(kind, |message| {
            message.bytes.extend_from_slice(text.as_bytes());
            message.bytes.push(0);
        });
    }

    /// Adds a nested attribute with the content that `fill` adds.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        fill(self);
        let length = self.bytes.len() - start;
        let length = u16::try_from(length).expect("what has no limit is checked before");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.pad();
    }

    /// The message's length, a multiple of 4 because the next one must be aligned.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn append_to(&self, bytes: &mut Vec<u8>, sequence: u32) {
        let start = bytes.len();
        bytes.extend_from_slice(&self.bytes);
        bytes[start..start + 4].copy_from_slice(&(self.bytes.len() as u32).to_ne_bytes());
        bytes[start + 8..start + 12].copy_from_slice(&sequence.to_ne_bytes());
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Adds flags to the message that begins here.
pub(crate) fn add_flags(message: &mut [u8], flags: u16) {
    let flags = u16_at(message, 6).unwrap_or(0) | flags;
    message[6..8].copy_from_slice(&flags.to_ne_bytes());
}

/// The kernel's answer to a message; error 0 means success.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub sequence: u32,
    /// A negative error number.
    pub error: i32,
    pub text: Option<String>,
}

impl Answer {
    /// Reads an answer that contains the answered message's header only (`NETLINK_CAP_ACK`).
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if u16_at(bytes, 4)? != ANSWER {
            return None;
        }
        let sequence = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
        let error = i32::from_ne_bytes(bytes.get(HEADER..HEADER + 4)?.try_into().ok()?);
        let mut rest = bytes.get(HEADER + ANSWERED..).unwrap_or(&[]);
        let mut text = None;
        while let Some((kind, content, after)) = first_attribute(rest) {
            if kind == WORDS {
                let words = content.strip_suffix(&[0]).unwrap_or(content);
                text = Some(String::from_utf8_lossy(words).into_owned());
            }
            rest = after;
        }
        Some(Self { sequence, error, text })
    }
}

fn first_attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(u16_at(bytes, 0)?);
    let content = bytes.get(ATTRIBUTE_HEADER..length)?;
    let after = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    Some((u16_at(bytes, 2)?, content, after))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

// The expected bytes are little-endian; UML only runs on such machines.
#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_header_fixed_part_and_padded_attributes() {
        let mut message = Message::new(0x1234, MAKE, &[9; 4]);
        message.text(3, "eth0");
        message.number(4, 1500);
        let mut bytes = Vec::new();
        message.append_to(&mut bytes, 7);
        // 16 of header, 4 of fixed part, 4 + 5 and 3 of padding, 4 + 4.
        assert_eq!(message.len(), 16 + 4 + 12 + 8);
        let header = [40, 0, 0, 0, 0x34, 0x12, 0x01, 0x06, 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes[..16], header);
        assert_eq!(bytes[16..20], [9; 4]);
        assert_eq!(bytes[20..32], *b"\x09\x00\x03\x00eth0\x00\x00\x00\x00");
        assert_eq!(bytes[32..], [8, 0, 4, 0, 0xdc, 0x05, 0, 0]);
    }

    #[test]
    fn the_length_of_a_nest_includes_padding() {
        let mut message = Message::new(1, 0, &[]);
        message.nest(8, |metrics| {
            metrics.attribute(1, &[5]);
            metrics.number(2, 6);
        });
        // 4 of its own, 4 + 1 + 3 and 4 + 4: 20.
        let nest = [20, 0, 8, 0, 5, 0, 1, 0, 5, 0, 0, 0, 8, 0, 2, 0, 6, 0, 0, 0];
        assert_eq!(message.bytes[16..], nest);
    }

    #[test]
    fn flags_are_added_to_existing_ones() {
        let mut bytes = Vec::new();
        Message::new(1, MAKE, &[]).append_to(&mut bytes, 0);
        add_flags(&mut bytes, ACK);
        assert_eq!(bytes[6..8], 0x605_u16.to_ne_bytes());
    }

    #[test]
    fn an_error_reply_has_errno_and_extended_ack() {
        let mut bytes = Vec::new();
        let mut answer = Message::new(ANSWER, 0, &(-22_i32).to_ne_bytes());
        answer.fixed(&[0; HEADER]);
        answer.attribute(2, &[1, 2, 3, 4]);
        answer.text(WORDS, "no such rate");
        answer.append_to(&mut bytes, 3);
        let expected = Answer { sequence: 3, error: -22, text: Some("no such rate".into()) };
        assert_eq!(Answer::read(&bytes), Some(expected));
        assert_eq!(Answer::read(&bytes[..10]), None);
    }
}
