//! What stands in each table.

use crate::table::Label;

crate::rows! {
    /// One run.
    ///
    /// After these columns stand the swept values, each under its path.
    "runs" RunRow RunColumns {
        /// The run's id: equal ids have equal results.
        run: Label,
        /// The experiment's name.
        experiment: Label,
        /// What ran it.
        backend: Label,
        /// The version of what ran it: that of tcplab and, on `linux`, before it the release of the
        /// kernel and a hash of what the kernel was built from: `6.12.117 ef2546a852d7e642 0.9.0`.
        version: Label,
        /// The seed of this repetition.
        seed: u64,
        /// Which repetition, from 0.
        repetition: u64,
        /// Simulated time in seconds.
        simulated_s: f64,
        /// Where the part of the run begins that the table `flows` is about, in seconds after the start
        /// of the experiment: 0, or what `measure` says.
        measured_from_s: f64,
        /// Where it ends: with the experiment, or as `measure` says.
        measured_to_s: f64,
        /// Packets that reached the end of a link, counted once for each link.
        packet_hops: u64,
        /// Elapsed time in seconds. The only value that differs between equal runs.
        wall_s: Option<f64>,
    }

    /// One flow: an entry of the experiment, or one instance of its `count`.
    ///
    /// Where its traffic consists of many objects (web sessions, arrivals, requests, connections of
    /// programs), the row has their sums and the table `transfers` has each of them.
    ///
    /// With a measuring window (`measure`), `bytes`, goodput, counters and RTTs are of what happened in
    /// it, what is said of datagrams is of those sent in it, and what is said of transfers is of those
    /// that began in it. `start_s`, `end_s`, `completion_s` and `outcome` are of the whole flow.
    "flows" FlowRow FlowColumns {
        /// The run.
        run: Label,
        /// The flow's name.
        flow: Label,
        /// The label to group by.
        class: Label,
        /// The host that sends the data.
        from: Label,
        /// The host that receives it.
        to: Label,
        /// What carries it: `tcp` or `udp`.
        transport: Label,
        /// The congestion control of the sender; nothing for UDP.
        cc: Option<Label>,
        /// When it began, in seconds after the start of the experiment.
        start_s: f64,
        /// When its last byte arrived if it had a size, else the end of the experiment.
        end_s: f64,
        /// Bytes that reached the application.
        bytes: u64,
        /// Those bytes over the time from start to end, as far as that is measured, in Mbit/s; nothing
        /// if it never connected, or ran at another time.
        goodput_mbit_s: Option<f64>,
        /// The slowest link on the way of the data, the first of equals: `left>right`. A link behind a
        /// shaper or a policer is as slow as that.
        bottleneck: Label,
        /// Goodput as a share of the rate of that link, or of its shaper or policer if that is less. A rate
        /// that changes counts as it begins.
        bottleneck_share: Option<f64>,
        /// From start to the arrival of the last byte, in seconds; nothing if it did not arrive.
        completion_s: Option<f64>,
        /// How it ended. With a size: `completed` (all of it arrived), `unfinished` (the experiment
        /// ended first), `partial` (UDP: all was sent, not all arrived; it ends with the last
        /// arrival). Without: `running`. Also `not started`, or the error that ended the connection,
        /// like `reset` and `timed out`.
        outcome: Label,
        /// Segments with data that were sent, repeated ones included; of UDP, datagrams.
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
        /// UDP: datagrams that were lost. One is lost if a later one arrived and it did not, or if it
        /// was sent so long before the end of the experiment that the slowest of those that arrived
        /// would have been there. One that is still under way at the end counts as lost if another has
        /// overtaken it.
        lost_packets: Option<u64>,
        /// UDP: datagrams that arrived after one that was sent later (RFC 4737).
        reordered_packets: Option<u64>,
        /// UDP: least one-way delay in milliseconds, from the call that sends a datagram to its
        /// arrival at the other host.
        delay_min_ms: Option<f64>,
        /// UDP: mean one-way delay in milliseconds.
        delay_mean_ms: Option<f64>,
        /// UDP: median of the one-way delays in milliseconds. Percentiles are those of the nearest
        /// rank: exact up to 4096 values, beyond within 0.2 %.
        delay_p50_ms: Option<f64>,
        /// UDP: one-way delay in milliseconds that 95 % of the datagrams do not exceed.
        delay_p95_ms: Option<f64>,
        /// UDP: one-way delay in milliseconds that 99 % of the datagrams do not exceed.
        delay_p99_ms: Option<f64>,
        /// UDP: interarrival jitter of RFC 3550 §6.4.1 in milliseconds: what the estimator, a moving
        /// average over about 16 datagrams, has come to at the last arrival. `ipdv_ms` is of the whole flow.
        jitter_ms: Option<f64>,
        /// UDP: mean of the absolute differences between the delays of datagrams that arrived one after the
        /// other, whatever was lost between them, in milliseconds: the differences D that `jitter_ms`
        /// smooths, and the mean jitter of ns-3's `FlowMonitor`.
        jitter_mean_ms: Option<f64>,
        /// UDP: mean of the absolute delay variations between datagrams that were sent one after the
        /// other, if both arrived, in whatever order (RFC 3393), in milliseconds.
        ipdv_ms: Option<f64>,
        /// Where it has transfers: how many began.
        transfers: Option<u64>,
        /// How many of these completed.
        completed_transfers: Option<u64>,
        /// Mean completion time of those that completed, in seconds.
        completion_mean_s: Option<f64>,
        /// Median completion time of all transfers that began, in seconds. Those that did not complete
        /// count as longer than the others; nothing where the percentile is one of them. Exact up to
        /// 4096 transfers, beyond within 0.2 %.
        completion_p50_s: Option<f64>,
        /// The same for 95 %.
        completion_p95_s: Option<f64>,
        /// The same for 99 %.
        completion_p99_s: Option<f64>,
    }

    /// One object of a flow whose traffic consists of many: a session of a web page, one of the
    /// transfers of `arrivals`, a request and its response, a connection of programs. In the order in
    /// which they end; those that the end of the experiment cuts short come last. Those that did not
    /// begin have no row.
    "transfers" TransferRow TransferColumns {
        /// The run.
        run: Label,
        /// The flow's name.
        flow: Label,
        /// Which of the flow's transfers, in the order in which they were to begin, from 1.
        transfer: u64,
        /// The label to group by: of a session, its class.
        class: Label,
        /// Which of the flow's connections carried it, from 1.
        connection: u64,
        /// When it began, in seconds after the start of the experiment.
        start_s: f64,
        /// When its last byte arrived or it broke, else the end of the experiment.
        end_s: f64,
        /// Bytes that reached the application; of requests, those of the response.
        bytes: u64,
        /// Those bytes over the time from start to end, in Mbit/s; nothing if it never connected.
        goodput_mbit_s: Option<f64>,
        /// From start to the arrival of the last byte, in seconds; nothing if it did not arrive. A
        /// connection of programs lasts until it is closed.
        completion_s: Option<f64>,
        /// `completed` (all of it arrived), `unfinished` (the experiment ended first), `running` (a
        /// connection of programs that was open at the end), or the error that ended it.
        outcome: Label,
        /// Segments with data that were sent, repeated ones included; nothing where transfers share a
        /// connection and these cannot be told apart.
        sent_segments: Option<u64>,
        /// Segments with data that were sent again.
        retransmitted_segments: Option<u64>,
        /// Times the retransmission timer ran out after the handshake.
        timeouts: Option<u64>,
        /// Times the window was made smaller for congestion.
        loss_episodes: Option<u64>,
        /// Least RTT in milliseconds.
        rtt_min_ms: Option<f64>,
        /// Mean of the RTT samples in milliseconds.
        rtt_mean_ms: Option<f64>,
        /// Greatest RTT in milliseconds.
        rtt_max_ms: Option<f64>,
    }

    /// One flow in one interval of the measuring window: of what happened from its start on and before
    /// its end (in the last interval of a run, also at its end). With `every` only.
    ///
    /// A flow has rows from the interval on in which it begins. Once all of it has arrived, it has rows
    /// only where its senders still counted something, like the RTT of the last ACK. Rows follow in the
    /// order of time; those of an interval in the order of the flows.
    "intervals" IntervalRow IntervalColumns {
        /// The run.
        run: Label,
        /// The flow's name.
        flow: Label,
        /// The label to group by.
        class: Label,
        /// When the interval begins, in seconds after the start of the experiment.
        start_s: f64,
        /// When it ends. The last one may be shorter than the others.
        end_s: f64,
        /// Bytes that reached the application.
        bytes: u64,
        /// Those bytes over the length of the interval, in Mbit/s, also where the flow began or completed
        /// within it: the sum over flows is what all of them had.
        goodput_mbit_s: f64,
        /// Segments with data that were sent, repeated ones included; of UDP, datagrams.
        sent_segments: u64,
        /// Segments with data that were sent again.
        retransmitted_segments: u64,
        /// Times the retransmission timer ran out after the handshake.
        timeouts: u64,
        /// Times the window was made smaller for congestion.
        loss_episodes: u64,
        /// Least RTT in milliseconds.
        rtt_min_ms: Option<f64>,
        /// Mean of the RTT samples in milliseconds.
        rtt_mean_ms: Option<f64>,
        /// Greatest RTT in milliseconds.
        rtt_max_ms: Option<f64>,
        /// UDP: datagrams that arrived, whenever they were sent.
        arrived_packets: Option<u64>,
        /// Where it has transfers: how many began.
        transfers: Option<u64>,
        /// How many completed, whenever they began.
        completed_transfers: Option<u64>,
    }

    /// The sender of one flow at one time.
    ///
    /// After these columns stand the internals of the congestion controls, named like
    /// `cubic_w_max`.
    "samples" SampleRow SampleColumns {
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
        /// The last RTT in milliseconds, as it was measured: of the newest segment that an ACK covered,
        /// if that was sent once.
        rtt_ms: Option<f64>,
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
    "links" LinkRow LinkColumns {
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
        /// Share of the time since the row before in which a packet was at the transmitter. A packet that
        /// stands still there counts: in an outage, until the next opportunity of a trace, or while a
        /// link with `contention` waits for its channel. Of a station of a LAN, only frames count, not
        /// the wait for the medium.
        utilisation: f64,
    }

    /// One packet that was dropped or lost. On `linux` also what a host dropped, like data that came
    /// twice: `sim` has no rows for that.
    "drops" DropRow DropColumns {
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
        /// `LOST_ON_THE_WIRE`, `CORRUPTED` (damaged on the wire), or the kernel's own reason.
        reason: Label,
    }

    /// One packet at one point of its way, where `record.packets` asks for it.
    "packets" PacketRow PacketColumns {
        /// The run.
        run: Label,
        /// When, in seconds after the start of the experiment.
        time_s: f64,
        /// The direction of a link: `left>right`.
        link: Label,
        /// Where there: `enter` (it comes to the queue), `leave` (its transmission begins), `arrive` (it
        /// is at the other end), `drop` (it was dropped or lost: see `drops`). On `linux` times are whole
        /// nanoseconds, and a router drops what is too large before it comes to a link.
        point: Label,
        /// The flow, if it is one.
        flow: Option<Label>,
        /// What it carries: `tcp`, `udp`, `icmp`.
        transport: Label,
        /// The sequence number of TCP as it stands in the header.
        seq: Option<u64>,
        /// The acknowledgment number, if the header has one.
        ack: Option<u64>,
        /// The window as it stands in the header of TCP: not scaled.
        window: Option<u64>,
        /// The flags of TCP: `SYN ACK`.
        flags: Option<Label>,
        /// The ECN field, if it is not zero: `ECT(0)`, `ECT(1)` or `CE`.
        ecn: Option<Label>,
        /// Bytes of data.
        payload_bytes: u64,
        /// The packet's size.
        bytes: u64,
    }
}

#[cfg(test)]
impl SampleRow {
    /// A row for tests that differs from others in its number alone; `labels`: of the run and the flow.
    pub(crate) fn numbered(number: u64, [run, flow]: [Label; 2]) -> Self {
        Self {
            run,
            flow,
            time_s: number as f64,
            cwnd_segments: number,
            ssthresh_segments: None,
            rtt_ms: None,
            srtt_ms: None,
            rto_ms: 200.0,
            in_flight_segments: 1,
            acked_bytes: 0,
            pacing_mbit_s: None,
            delivery_rate_mbit_s: None,
        }
    }
}
