//! Packed files: gzip (RFC 1952) and Zstandard (RFC 8878), of one member or several.

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, BufReader, Read};

/// The read size of packed files, in bytes.
const PIECE: usize = 1 << 17;

/// The unpacked bytes of a gzip file.
pub(super) fn gzip(packed: impl Read + Send + 'static) -> impl Read + Send + 'static {
    MultiGzDecoder::new(BufReader::with_capacity(PIECE, packed))
}

/// An empty frame: the decoder refuses windows above 100 MB from its second frame on.
const EMPTY: [u8; 9] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00];

/// The unpacked bytes of a Zstandard file.
pub(super) struct Zstd<R: Read> {
    state: State<R>,
}

enum State<R: Read> {
    /// Before a frame, if one follows.
    Between(Peeked<R>, FrameDecoder),
    Within(StreamingDecoder<Peeked<R>, FrameDecoder>),
    Over,
}

impl<R: Read> Zstd<R> {
    pub fn new(packed: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.init(&EMPTY[..]).expect("the frame is right");
        let packed = Peeked { first: None, rest: BufReader::with_capacity(PIECE, packed) };
        Self { state: State::Between(packed, decoder) }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Ok(0),
                State::Between(mut packed, decoder) => {
                    if packed.is_over()? {
                        return Ok(0);
                    }
                    let within = StreamingDecoder::new_with_decoder(packed, decoder);
                    self.state = State::Within(within.map_err(io::Error::other)?);
                }
                State::Within(mut within) => {
                    let count = within.read(room)?;
                    if count > 0 || room.is_empty() {
                        self.state = State::Within(within);
                        return Ok(count);
                    }
                    let (packed, decoder) = within.into_parts();
                    self.state = State::Between(packed, decoder);
                }
            }
        }
    }
}

/// A reader that can tell whether more data follows.
struct Peeked<R> {
    first: Option<u8>,
    rest: BufReader<R>,
}

impl<R: Read> Peeked<R> {
    fn is_over(&mut self) -> io::Result<bool> {
        let mut byte = [0];
        if self.first.is_none() && self.rest.read(&mut byte)? == 1 {
            self.first = Some(byte[0]);
        }
        Ok(self.first.is_none())
    }
}

impl<R: Read> Read for Peeked<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match (room.first_mut(), self.first.take()) {
            (Some(place), Some(byte)) => {
                *place = byte;
                Ok(1)
            }
            (None, first) => {
                self.first = first;
                Ok(0)
            }
            (Some(_), None) => self.rest.read(room),
        }
    }
}
