//! Faults of a capture, and what cannot be known because of them.

use super::rows::CaptureFaultRow;
use crate::container::Reader;
use crate::flows::Found;
use tcplab_tables::Table;

/// Counts made while packets are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Truncated packets; truncated TCP headers; truncated TCP options.
    pub cut: u64,
    pub cut_headers: u64,
    pub cut_options: u64,
    /// The previous packet's time, how often the next one was earlier, and by how much at most.
    pub before: i64,
    pub steps_back: u64,
    pub furthest_back: i64,
    /// Packets with unknown headers, and the link type of the first of them, if that is the reason.
    pub unreadable: u64,
    pub link: Option<u16>,
    /// Packets with missing fragments.
    pub incomplete: u64,
}

/// A fault: its name, its count, the observation, and what cannot be known.
type Fault = (&'static str, u64, String, String);

impl Faults {
    /// Adds a row for each fault.
    pub fn tell(
        &self,
        file: &str,
        reader: &Reader,
        found: &Found,
        packets: u64,
        table: &mut Table<CaptureFaultRow>,
    ) {
        let mut faults = Vec::new();
        self.of_file(reader, packets, &mut faults);
        self.of_packets(&mut faults);
        of_connections(found, &mut faults);
        for (fault, count, seen, unknown) in faults.into_iter().filter(|(_, count, ..)| *count > 0)
        {
            let row = CaptureFaultRow {
                file: table.label(file),
                fault: table.label(fault),
                count,
                seen: table.label(&seen),
                unknown: table.label(&unknown),
            };
            table.push(row);
        }
    }

    fn of_file(&self, reader: &Reader, packets: u64, faults: &mut Vec<Fault>) {
        if let Some(damage) = reader.damage() {
            faults.push((
                "damage",
                1,
                format!("byte {}: {}", damage.at, damage.what),
                format!("what came after the first {packets} packets"),
            ));
        }
        if packets == 0 {
            let unknown = "anything about the traffic".into();
            faults.push(("damage", 1, "there are no packets in the file".into(), unknown));
        }
        let dropped =
            reader.interfaces().iter().fold(0, |all: u64, it| all.saturating_add(it.dropped));
        faults.push((
            "dropped packets",
            dropped,
            format!("the capturing program says that it lost {dropped} packets"),
            "which packets these were: bytes and losses of connections that they belonged to"
                .into(),
        ));
        faults.push((
            "clock",
            self.steps_back,
            format!(
                "{} packets have an earlier time than the packet before, by up to {} ms",
                self.steps_back,
                self.furthest_back as f64 / 1e6
            ),
            "times across these steps; they count as no time".into(),
        ));
    }

    fn of_packets(&self, faults: &mut Vec<Fault>) {
        let what = self.link.map_or_else(
            || "whose headers are cut or malformed".into(),
            |link| format!("of a link whose headers are not known (type {link})"),
        );
        faults.push((
            "unreadable packets",
            self.unreadable,
            format!("{} packets {what}", self.unreadable),
            "what they carried".into(),
        ));
        let seen = format!("{} packets were not kept whole", self.cut);
        faults.push(("snap length", self.cut, seen, "data of applications".into()));
        let (headers, options) = (self.cut_headers, self.cut_options);
        faults.push((
            "headers",
            headers + options,
            format!("{headers} headers of TCP and the options of {options} others are cut"),
            "what these packets did: those without a header are left out, in others SACK and timestamps may \
             be missing"
                .into(),
        ));
        faults.push((
            "fragments",
            self.incomplete,
            format!("fragments of {} packets are missing", self.incomplete),
            "what these packets carried".into(),
        ));
    }
}

fn of_connections(found: &Found, faults: &mut Vec<Fault>) {
    faults.push((
        "one direction",
        found.one_sided,
        format!("of {} connections packets of one side alone were captured", found.one_sided),
        "their round trips, windows, causes of retransmissions and what limited them".into(),
    ));
    faults.push((
        "missing packets",
        found.missing_bytes,
        format!("{} bytes were sent or acknowledged, and are not there", found.missing_bytes),
        "whether the network lost them before the place of the capture, or the capture itself"
            .into(),
    ));
    faults.push((
        "offload",
        found.oversized,
        format!(
            "{} packets are larger than the MSS: captured before a network card divided them, or after \
             it put them together",
            found.oversized
        ),
        "when each segment was on the wire, and which packets of them were lost or marked".into(),
    ));
    faults.push((
        "duplicates",
        found.duplicates,
        format!("{} packets of TCP are there twice", found.duplicates),
        "nothing: they count as packets, and in nothing else; where the same packet is captured at two \
         places, the first of them counts"
            .into(),
    ));
    faults.push((
        "handshakes",
        found.without_handshake,
        format!("of {} connections the beginning was not captured", found.without_handshake),
        "their MSS, window scale (windows count as they stand in headers) and initial window"
            .into(),
    ));
    faults.push((
        "connections",
        found.given_up,
        format!("{} connections were given up because too many were open at once", found.given_up),
        "what they did later, which counts as further connections".into(),
    ));
}
