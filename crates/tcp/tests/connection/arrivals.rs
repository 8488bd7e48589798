//! The controller's `in_ack_event` of Linux: which segments it is told of.
#![expect(clippy::unwrap_used, reason = "a lock that is poisoned fails the test")]

use crate::peer::*;
use std::sync::{Arc, Mutex};
use tcplab_cc::{Ack, Congestion, CongestionControl, Control, FlowState};
use tcplab_tcp::{BuildControl, Start};

/// For each event: segments acknowledged, and whether nothing was outstanding.
type Heard = Arc<Mutex<Vec<(u64, bool)>>>;

/// A window of ten segments, whatever happens, and an open ear.
#[derive(Clone, Debug)]
struct Listener(Heard);

impl CongestionControl for Listener {
    fn on_ack(&mut self, _flow: &FlowState, _ack: &Ack) {}

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        self.0.lock().unwrap().push((flow.una, ack.is_idle));
    }

    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _flow: &FlowState, _event: Congestion) {}

    fn control(&self) -> Control {
        Control {
            cwnd: 10,
            ssthresh: None,
            pacing: None,
            prr: false,
            least_burst: None,
            longest_burst: None,
        }
    }
}

fn listener() -> (BuildControl, Heard) {
    let heard = Heard::default();
    let ear = Arc::clone(&heard);
    (Arc::new(move |_: Start| Box::new(Listener(Arc::clone(&ear)))), heard)
}

fn listening() -> (Peer, Heard) {
    let (control, heard) = listener();
    (Peer::steered(linux(), ms(100), control), heard)
}

#[test]
fn ack_of_each_request_segment_is_processed_if_data_is_read() {
    // tcp_rcv_established: where data is read at once, the memory is freed before the next segment
    // arrives (sk_mem_uncharge), so the ACK of each segment is processed. Westwood+ counts each as
    // a duplicate ACK (westwood_acked_count).
    let (mut peer, heard) = listening();
    peer.sends(ms(1), data(1..MSS + 1));
    peer.gets(ms(1), ack(MSS + 1));
    peer.sends(ms(2), data(MSS + 1..MSS + 101));
    peer.gets(ms(2), ack(MSS + 101));
    assert_eq!(*heard.lock().unwrap(), [], "nothing to send, and no controller");
    peer.writes(ms(3), 500);
    peer.gets(ms(3), data(1..501));
    assert_eq!(*heard.lock().unwrap(), [(1, true); 2]);
    peer.sends(ms(103), ack(501));
    assert_eq!(heard.lock().unwrap()[2..], [(501, false)]);
}

#[test]
fn unread_request_leaves_forward_alloc_so_later_ack_is_predicted() {
    // The first segment takes 1000 + 960 bytes of one page (`sk_forward_alloc`) and leaves 2,136.
    // The second fits, and its header is as predicted, so its ACK is not processed.
    let (mut peer, heard) = listening();
    peer.reads = false;
    peer.sends(ms(1), data(1..MSS + 1));
    peer.gets(ms(1), ack(MSS + 1));
    peer.sends(ms(2), data(MSS + 1..MSS + 101));
    peer.gets(ms(2), ack(MSS + 101));
    peer.writes(ms(3), 500);
    peer.gets(ms(3), data(1..501));
    assert_eq!(*heard.lock().unwrap(), [(1, true)]);
}

#[test]
fn ack_of_a_request_completing_the_handshake_skips_congestion_control() {
    // tcp_rcv_state_process: the ACK of the handshake is lost and the request carries it. It is
    // processed before the congestion control begins (tcp_init_transfer).
    let (control, heard) = listener();
    let mut peer = Peer::steered_listener(linux(), control, syn());
    peer.gets(0, syn().acking(1));
    peer.sends(ms(100), data(1..MSS + 1).acking(1));
    peer.ignores(ms(100));
    peer.writes(ms(101), 500);
    peer.gets(ms(101), data(1..501));
    assert_eq!(*heard.lock().unwrap(), []);
    peer.sends(ms(201), ack(501));
    assert_eq!(*heard.lock().unwrap(), [(501, false)]);
}
