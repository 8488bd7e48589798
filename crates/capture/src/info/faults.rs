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
                format!("everything after the first {packets} packets"),
            ));
        }
        if packets == 0 {
            let unknown = "anything about the traffic".into();
            faults.push(("damage", 1, "the file has no packets".into(), unknown));
        }
        let dropped =
            reader.interfaces().iter().fold(0, |all: u64, it| all.saturating_add(it.dropped));
        faults.push((
            "dropped packets",
            dropped,
            format!("the capturing program says that it lost {dropped} packets"),
            "which packets were lost, and so the bytes and losses of their connections".into(),
        ));
        faults.push((
            "clock",
            self.steps_back,
            format!(
                "{} packets have an earlier time than the packet before, by up to {} ms",
                self.steps_back,
                self.furthest_back as f64 / 1e6
            ),
            "times across these steps, which count as zero".into(),
        ));
    }

    fn of_packets(&self, faults: &mut Vec<Fault>) {
        let what = self.link.map_or_else(
            || "whose headers are cut or malformed".into(),
            |link| format!("of an unsupported link type ({link})"),
        );
        faults.push((
            "unreadable packets",
            self.unreadable,
            format!("{} packets {what}", self.unreadable),
            "the contents of these packets".into(),
        ));
        let seen = format!("{} packets were cut to the snap length", self.cut);
        faults.push(("snap length", self.cut, seen, "application data".into()));
        let (headers, options) = (self.cut_headers, self.cut_options);
        faults.push((
            "headers",
            headers + options,
            format!("{headers} TCP headers and the options of {options} others are cut"),
            "the role of these packets: packets without a whole header are left out, and SACK and \
             timestamps may be missing from the others"
                .into(),
        ));
        faults.push((
            "fragments",
            self.incomplete,
            format!("fragments of {} packets are missing", self.incomplete),
            "the contents of these packets".into(),
        ));
    }
}

fn of_connections(found: &Found, faults: &mut Vec<Fault>) {
    faults.push((
        "one direction",
        found.one_sided,
        format!("of {} connections only one direction was captured", found.one_sided),
        "their RTTs, windows, limits and causes of retransmissions".into(),
    ));
    faults.push((
        "missing packets",
        found.missing_bytes,
        format!("{} bytes were sent or acknowledged, but were not captured", found.missing_bytes),
        "whether the network lost these bytes before the capture point, or the capture missed them"
            .into(),
    ));
    faults.push((
        "offload",
        found.oversized,
        format!(
            "{} packets are larger than the MSS: captured before segmentation offload (TSO) or \
             after receive offload (GRO)",
            found.oversized
        ),
        "when each segment was on the wire, and which segments were lost or marked".into(),
    ));
    faults.push((
        "duplicates",
        found.duplicates,
        format!("{} TCP packets were captured twice", found.duplicates),
        "nothing: a second copy counts only in the number of packets; of a packet captured at two \
         places, the first copy counts"
            .into(),
    ));
    faults.push((
        "handshakes",
        found.without_handshake,
        format!("of {} connections the handshake was not captured", found.without_handshake),
        "their MSS, window scale (windows are taken unscaled from headers) and initial window"
            .into(),
    ));
    faults.push((
        "connections",
        found.given_up,
        format!("{} connections were given up because too many were open at once", found.given_up),
        "their later packets, which count as further connections".into(),
    ));
}
