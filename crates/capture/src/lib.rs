//! Packet captures: reads pcap and pcapng, writes pcapng, and analyses each connection.
//!
//! | folder | job |
//! |---|---|
//! | `input` | sources of bytes: files, packed or not |
//! | `container` | file formats: packets one after another, read and written |
//! | `decode` | packet headers |
//! | `flows` | the analysis of each TCP connection |
//! | `info` | contents and faults of a capture |
//! | `error` | why a capture cannot be read |
//!
//! Data flows one way: input -> container -> decode -> flows and info.

mod container;
mod decode;
mod error;
mod flows;
mod info;
mod input;

pub use container::{Damage, FILE, Interface, Reader, Record, SNAP, Writer};
pub use decode::{
    Address, Flags, Fragments, Inner, Ip, Options, Place, SackBlock, Tcp, inner, protocol,
};
pub use error::{Error, Problem};
pub use flows::{
    CaptureFlowColumns, CaptureFlowRow, CapturePacketColumns, CapturePacketRow, CaptureTurnColumns,
    CaptureTurnRow, FlowTables, Flows, Found, MOST_CONNECTIONS,
};
pub use info::{
    CaptureFaultColumns, CaptureFaultRow, CaptureLengthColumns, CaptureLengthRow,
    CaptureProtocolColumns, CaptureProtocolRow, CaptureTotalColumns, CaptureTotalRow, DECLARED,
    Info,
};
pub use input::Source;
