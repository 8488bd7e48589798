//! Packet header fields in tables, for all backends alike.

/// The TCP flags, lowest bit first.
const FLAGS: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];

/// The TCP flags as text, lowest bit first: `SYN ACK`.
pub fn tcp_flags(bits: u16) -> String {
    let set = FLAGS.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

/// The ECN field of an IP header as text, unless it is zero (RFC 3168 §5).
pub fn ecn(bits: u8) -> Option<&'static str> {
    [None, Some("ECT(1)"), Some("ECT(0)"), Some("CE")][usize::from(bits & 3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_header() {
        // RFC 9293 §3.1 and RFC 9768 §3.1: AE, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the
        // left.
        assert_eq!(tcp_flags(0b0_0001_0010), "SYN ACK");
        assert_eq!(tcp_flags(0b1_1100_0010), "SYN ECE CWR AE");
        assert_eq!(tcp_flags(0b0_0001_1001), "FIN PSH ACK");
        assert_eq!(tcp_flags(0), "");
        // RFC 3168 §5: 10 is ECT(0), 01 is ECT(1), 11 is CE.
        assert_eq!([0, 1, 2, 3].map(ecn), [None, Some("ECT(1)"), Some("ECT(0)"), Some("CE")]);
    }
}
