//! Packet captures: reads pcap and pcapng, writes pcapng, and tells what happened to each connection.
//!
//! | folder | job |
//! |---|---|
//! | `input` | where bytes come from: files, packed or not |
//! | `container` | the formats of files: packets one after another, read and written |
//! | `decode` | what the headers of a packet say |
//! | `flows` | what happened to each TCP connection |
//! | `info` | what a capture has, and what is wrong with it |
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
    CaptureTurnRow, Flows, Found, MOST_CONNECTIONS, Told,
};
pub use info::{
    CaptureFaultColumns, CaptureFaultRow, CaptureLengthColumns, CaptureLengthRow,
    CaptureProtocolColumns, CaptureProtocolRow, CaptureTotalColumns, CaptureTotalRow, DECLARED,
    Info,
};
pub use input::Source;
