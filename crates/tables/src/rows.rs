//! What stands in each table.

use crate::table::{Label, rows};

rows! {
    /// One run.
    ///
    /// After these columns stand the swept values, each under its path.
    "runs" RunRow {
        /// The run's id: equal ids have equal results.
        run: Label,
        /// The experiment's name.
        experiment: Label,
        /// What ran it.
        backend: Label,
        /// The version of what ran it.
        version: Label,
        /// The seed of this repetition.
        seed: u64,
        /// Which repetition, from 0.
        repetition: u64,
        /// Simulated time in seconds.
        simulated_s: f64,
        /// Packets that reached the end of a link, counted once for each link.
        packet_hops: u64,
        /// Elapsed time in seconds. The only value that differs between equal runs.
        wall_s: Option<f64>,
    }

    /// One connection, or one session of a web page.
    "flows" FlowRow {
        /// The run.
        run: Label,
        /// The flow's name; where a flow has many connections or sessions, `NAME#1` and so on.
        flow: Label,
        /// The label to group by; of a session, its class.
        class: Label,
        /// The host that sends the data.
        from: Label,
        /// The host that receives it.
        to: Label,
        /// The congestion control of the sender.
        cc: Label,
        /// When it began, in seconds after the start of the experiment.
        start_s: f64,
        /// When its last byte arrived if it had a size, else the end of the experiment.
        end_s: f64,
        /// Bytes that reached the application.
        bytes: u64,
        /// Those bytes over the time from start to end, in Mbit/s; nothing if it never connected.
        goodput_mbit_s: Option<f64>,
        /// The slowest link on the way of the data, the first of equals: `left>right`.
        bottleneck: Label,
        /// Goodput as a share of the rate of that link, which is the rate that it begins with where it
        /// changes.
        bottleneck_share: Option<f64>,
        /// From start to the arrival of the last byte, in seconds; nothing if it did not arrive. A
        /// connection of programs lasts until it is closed.
        completion_s: Option<f64>,
        /// How it ended. With a size: `completed` (all of it arrived), `unfinished` (the experiment
        /// ended first), `partial` (UDP: all was sent, not all arrived; it ends with the last
        /// arrival). Without: `running`. Also `not started`, or the error that ended the connection,
        /// like `reset` and `timed out`.
        outcome: Label,
        /// Segments with data that were sent, repeated ones included.
        sent_segments: u64,
        /// Segments with data that were sent again. SYNs, SYN-ACKs and FINs without data do not count.
        retransmitted_segments: u64,
        /// Times the retransmission timer ran out after the handshake.
        timeouts: u64,
        /// Times the window was made smaller for congestion: for losses, timeouts included, for marks, and
        /// by algorithms that do so for delay. No loss is needed.
        loss_episodes: u64,
        /// Least RTT in milliseconds. An ACK gives a sample if it covers a segment that was sent once:
        /// the RTT of the newest of these. The handshake gives none.
        rtt_min_ms: Option<f64>,
        /// Mean of the RTT samples in milliseconds.
        rtt_mean_ms: Option<f64>,
        /// Greatest RTT in milliseconds.
        rtt_max_ms: Option<f64>,
    }

    /// The sender of one flow at one time.
    ///
    /// After these columns stand the internals of the congestion controls, named like
    /// `cubic_w_max`.
    "samples" SampleRow {
        /// The run.
        run: Label,
        /// The flow.
        flow: Label,
        /// When, in seconds after the start of the experiment.
        time_s: f64,
        /// Congestion window in segments.
        cwnd_segments: u64,
        /// Slow-start threshold in segments, once there is one.
        ssthresh_segments: Option<u64>,
        /// Smoothed RTT in milliseconds, once there is one.
        srtt_ms: Option<f64>,
        /// Retransmission timeout in milliseconds.
        rto_ms: f64,
        /// Segments in flight.
        in_flight_segments: u64,
        /// Bytes acknowledged since the start.
        acked_bytes: u64,
        /// Pacing rate in Mbit/s, for those that pace.
        pacing_mbit_s: Option<f64>,
        /// How fast the path delivered when that was last measured, in Mbit/s of data, for senders
        /// that measure it.
        delivery_rate_mbit_s: Option<f64>,
    }

    /// One direction of a link at one time. Counts are since the start of the experiment.
    "links" LinkRow {
        /// The run.
        run: Label,
        /// The direction: `left>right`.
        link: Label,
        /// When, in seconds after the start of the experiment.
        time_s: f64,
        /// Packets that wait.
        queue_packets: u64,
        /// Their bytes.
        queue_bytes: u64,
        /// The most packets that waited at once since the row before.
        queue_max_packets: u64,
        /// The most bytes that waited at once since the row before.
        queue_max_bytes: u64,
        /// Packets that waited, as the mean over the time since the row before.
        queue_mean_packets: f64,
        /// Bytes that waited, as the mean over the time since the row before.
        queue_mean_bytes: f64,
        /// Packets the queue had no room for, or its discipline dropped.
        dropped_packets: u64,
        /// Packets lost on the wire.
        lost_packets: u64,
        /// Packets marked instead of dropped.
        marked_packets: u64,
        /// Packets accepted for transmission. A drop-tail queue has accepted what waits in it; other
        /// disciplines may still drop that, and count what has left them.
        sent_packets: u64,
        /// Their bytes.
        sent_bytes: u64,
        /// Share of the time since the row before in which it transmitted.
        utilisation: f64,
    }

    /// One packet that was dropped or lost. On `linux` also what a host dropped, like data that came
    /// twice: `sim` has no rows for that.
    "drops" DropRow {
        /// The run.
        run: Label,
        /// When, in seconds after the start of the experiment.
        time_s: f64,
        /// The direction of a link, or nothing if a host dropped it.
        link: Option<Label>,
        /// The flow, if it is one.
        flow: Option<Label>,
        /// The packet's size.
        bytes: u64,
        /// Why: `QUEUE_FULL` (no room in the queue), `QDISC_DROP` (the queue's discipline dropped it),
        /// `LOST_ON_THE_WIRE`, or the kernel's own reason.
        reason: Label,
    }
}
