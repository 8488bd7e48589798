//! The columns of each table.

use crate::table::Label;

crate::rows! {
    /// One run.
    ///
    /// After these columns come the swept values, each under its path.
    "runs" RunRow RunColumns {
        /// The run's id: equal ids have equal results.
        run: Label,
        /// The experiment's name.
        experiment: Label,
        /// The backend: `sim` or `linux`.
        backend: Label,
        /// The version of the backend: that of tcplab, preceded on `linux` by the release of the
        /// kernel and a hash of its sources: `6.12.117 ef2546a852d7e642 0.9.0`.
        version: Label,
        /// The seed of this repetition.
        seed: u64,
        /// The number of the repetition, from 0.
        repetition: u64,
        /// Simulated time in seconds.
        simulated_s: f64,
        /// The beginning of the part of the run that the table `flows` covers, in seconds after the
        /// start of the experiment: 0, or as set by `measure`.
        measured_from_s: f64,
        /// The end of that part: that of the experiment, or as set by `measure`.
        measured_to_s: f64,
        /// Packets that reached the end of a link, counted once for each link.
        packet_hops: u64,
        /// Elapsed real time in seconds. The only value that differs between equal runs.
        wall_s: Option<f64>,
    }

    /// One flow: an entry of the experiment, or one instance of its `count`.
    ///
    /// If its traffic consists of many objects (web sessions, arrivals, requests, connections of
    /// programs), the row has their sums, and the table `transfers` has a row for each.
    ///
    /// With a measuring window (`measure`), `bytes`, goodput, counters and RTTs cover events in the
    /// window, datagram columns cover the datagrams sent in it, and transfer columns cover the
    /// transfers that began in it. `start_s`, `end_s`, `completion_s` and `outcome` are those of
    /// the whole flow.
    "flows" FlowRow FlowColumns {
        /// The run.
        run: Label,
        /// The name of the flow.
        flow: Label,
        /// The label for grouping.
        class: Label,
        /// The host that sends the data.
        from: Label,
        /// The host that receives the data.
        to: Label,
        /// The transport: `tcp` or `udp`.
        transport: Label,
        /// The congestion control of the sender; empty for UDP.
        cc: Option<Label>,
        /// The start, in seconds after the start of the experiment.
        start_s: f64,
        /// The arrival of the last byte if the flow has a size, else the end of the experiment.
        end_s: f64,
        /// Bytes that reached the application.
        bytes: u64,
        /// `bytes` over the time from start to end, within the measured part, in Mbit/s; empty if
        /// the flow never connected, or ran only outside the measured part.
        goodput_mbit_s: Option<f64>,
        /// The slowest link on the forward path, the first among equals: `left>right`. For a link
        /// with a shaper or a policer, the lower rate counts.
        bottleneck: Label,
        /// Goodput as a share of the bottleneck's rate, or of its shaper's or policer's rate if
        /// that is lower. For a changing rate, the initial one counts.
        bottleneck_share: Option<f64>,
        /// The time from start to the arrival of the last byte, in seconds; empty if that did not
        /// arrive.
        completion_s: Option<f64>,
        /// The outcome. With a size: `completed` (all data arrived), `unfinished` (the experiment
        /// ended first), `partial` (UDP: all datagrams were sent, but not all arrived; the flow
        /// ends with the last arrival). Without a size: `running`. Also `not started`, or the error
        /// that ended the connection, like `reset` and `timed out`.
        outcome: Label,
        /// Segments with data that were sent, retransmissions included; for UDP, datagrams.
        sent_segments: u64,
        /// Segments with data that were retransmitted. SYNs, SYN-ACKs and FINs without data do not
        /// count.
        retransmitted_segments: u64,
        /// Retransmission timeouts after the handshake.
        timeouts: u64,
        /// Reductions of the congestion window: for losses, including timeouts, for congestion
        /// marks, and for delay by algorithms that react to it. A reduction does not require a
        /// loss.
        loss_episodes: u64,
        /// Minimum RTT in milliseconds. An ACK gives a sample if it covers a segment that was sent
        /// once: the RTT of the newest of these. The handshake gives none.
        rtt_min_ms: Option<f64>,
        /// Mean of the RTT samples in milliseconds.
        rtt_mean_ms: Option<f64>,
        /// Maximum RTT in milliseconds.
        rtt_max_ms: Option<f64>,
        /// UDP: lost datagrams. A datagram is lost if it did not arrive but a later one did, or if
        /// it was sent so long before the end of the experiment that the slowest arrived datagram
        /// would have arrived in its place. A datagram still in transit at the end counts as lost
        /// if another one has overtaken it.
        lost_packets: Option<u64>,
        /// UDP: datagrams that arrived after one that was sent later (RFC 4737).
        reordered_packets: Option<u64>,
        /// UDP: minimum one-way delay in milliseconds, from the sending call to the arrival at the
        /// other host.
        delay_min_ms: Option<f64>,
        /// UDP: mean one-way delay in milliseconds.
        delay_mean_ms: Option<f64>,
        /// UDP: median one-way delay in milliseconds. Percentiles use the nearest rank and are
        /// exact up to 4096 values, and within 0.2 % beyond.
        delay_p50_ms: Option<f64>,
        /// UDP: 95th percentile of the one-way delay in milliseconds.
        delay_p95_ms: Option<f64>,
        /// UDP: 99th percentile of the one-way delay in milliseconds.
        delay_p99_ms: Option<f64>,
        /// UDP: interarrival jitter of RFC 3550 §6.4.1 in milliseconds: the value of the estimator,
        /// a moving average over about 16 datagrams, at the last arrival. `ipdv_ms` covers the
        /// whole flow.
        jitter_ms: Option<f64>,
        /// UDP: mean absolute difference between the delays of consecutive arrivals, regardless of
        /// losses between them, in milliseconds: the differences D that `jitter_ms` smooths, and
        /// the mean jitter of ns-3's `FlowMonitor`.
        jitter_mean_ms: Option<f64>,
        /// UDP: mean absolute delay variation between datagrams sent consecutively, if both
        /// arrived, in any order (RFC 3393), in milliseconds.
        ipdv_ms: Option<f64>,
        /// Flows with transfers: the number that began.
        transfers: Option<u64>,
        /// The number of these that completed.
        completed_transfers: Option<u64>,
        /// Mean completion time of completed transfers, in seconds.
        completion_mean_s: Option<f64>,
        /// Median completion time of all transfers that began, in seconds. Incomplete ones count as
        /// longer than all others; empty if the percentile is one of these. Exact up to 4096
        /// transfers, within 0.2 % beyond.
        completion_p50_s: Option<f64>,
        /// The 95th percentile, in the same way.
        completion_p95_s: Option<f64>,
        /// The 99th percentile, in the same way.
        completion_p99_s: Option<f64>,
    }

    /// One object of a flow with many: a session of a web page, one of the transfers of `arrivals`,
    /// a request and its response, a connection of programs. Rows are in the order in which
    /// transfers end; those cut short by the end of the experiment come last. Transfers that did
    /// not begin have no row.
    "transfers" TransferRow TransferColumns {
        /// The run.
        run: Label,
        /// The name of the flow.
        flow: Label,
        /// The number of the transfer in the flow, in the order of planned starts, from 1.
        transfer: u64,
        /// The label for grouping; for a session, its class.
        class: Label,
        /// The number of the flow's connection that carried the transfer, from 1.
        connection: u64,
        /// The start, in seconds after the start of the experiment.
        start_s: f64,
        /// The arrival of the last byte or the failure, else the end of the experiment.
        end_s: f64,
        /// Bytes that reached the application; for requests, those of the response.
        bytes: u64,
        /// `bytes` over the time from start to end, in Mbit/s; empty if the transfer never
        /// connected.
        goodput_mbit_s: Option<f64>,
        /// The time from start to the arrival of the last byte, in seconds; empty if that did not
        /// arrive. A connection of programs lasts until it is closed.
        completion_s: Option<f64>,
        /// The outcome: `completed` (all data arrived), `unfinished` (the experiment ended first),
        /// `running` (a connection of programs that was open at the end), or the error that ended
        /// the transfer.
        outcome: Label,
        /// Segments with data that were sent, retransmissions included; empty if transfers share a
        /// connection and their segments cannot be distinguished.
        sent_segments: Option<u64>,
        /// Segments with data that were retransmitted.
        retransmitted_segments: Option<u64>,
        /// Retransmission timeouts after the handshake.
        timeouts: Option<u64>,
        /// Reductions of the congestion window.
        loss_episodes: Option<u64>,
        /// Minimum RTT in milliseconds.
        rtt_min_ms: Option<f64>,
        /// Mean of the RTT samples in milliseconds.
        rtt_mean_ms: Option<f64>,
        /// Maximum RTT in milliseconds.
        rtt_max_ms: Option<f64>,
    }

    /// One flow in one interval of the measuring window: events from the start of the interval on
    /// and before its end (in the last interval of a run, also at its end). Only with `every`.
    ///
    /// A flow has rows from the interval in which it begins. After all of its data has arrived, it
    /// has rows only where its senders still counted something, like the RTT of the last ACK. Rows
    /// are in order of time, and within an interval in the order of flows.
    "intervals" IntervalRow IntervalColumns {
        /// The run.
        run: Label,
        /// The name of the flow.
        flow: Label,
        /// The label for grouping.
        class: Label,
        /// The beginning of the interval, in seconds after the start of the experiment.
        start_s: f64,
        /// The end of the interval. The last one may be shorter than the others.
        end_s: f64,
        /// Bytes that reached the application.
        bytes: u64,
        /// `bytes` over the length of the interval, in Mbit/s, also if the flow began or completed
        /// within it: the sum over flows is the total goodput.
        goodput_mbit_s: f64,
        /// Segments with data that were sent, retransmissions included; for UDP, datagrams.
        sent_segments: u64,
        /// Segments with data that were retransmitted.
        retransmitted_segments: u64,
        /// Retransmission timeouts after the handshake.
        timeouts: u64,
        /// Reductions of the congestion window.
        loss_episodes: u64,
        /// Minimum RTT in milliseconds.
        rtt_min_ms: Option<f64>,
        /// Mean of the RTT samples in milliseconds.
        rtt_mean_ms: Option<f64>,
        /// Maximum RTT in milliseconds.
        rtt_max_ms: Option<f64>,
        /// UDP: datagrams that arrived, regardless of when they were sent.
        arrived_packets: Option<u64>,
        /// Flows with transfers: the number that began.
        transfers: Option<u64>,
        /// The number that completed, regardless of when they began.
        completed_transfers: Option<u64>,
    }

    /// The sender of one flow at one time.
    ///
    /// After these columns come the internal state variables of congestion controls, named like
    /// `cubic_w_max`.
    "samples" SampleRow SampleColumns {
        /// The run.
        run: Label,
        /// The flow.
        flow: Label,
        /// The time, in seconds after the start of the experiment.
        time_s: f64,
        /// Congestion window in segments.
        cwnd_segments: u64,
        /// Slow-start threshold in segments, once it is set.
        ssthresh_segments: Option<u64>,
        /// The last RTT sample in milliseconds: that of the newest segment covered by an ACK, if it
        /// was sent once.
        rtt_ms: Option<f64>,
        /// Smoothed RTT in milliseconds, after the first sample.
        srtt_ms: Option<f64>,
        /// Retransmission timeout in milliseconds.
        rto_ms: f64,
        /// Segments in flight.
        in_flight_segments: u64,
        /// Bytes acknowledged since the start.
        acked_bytes: u64,
        /// Pacing rate in Mbit/s, for paced flows.
        pacing_mbit_s: Option<f64>,
        /// The last measured delivery rate, in Mbit/s of data, for senders that measure it.
        delivery_rate_mbit_s: Option<f64>,
    }

    /// One direction of a link at one time. Counters begin at the start of the experiment.
    "links" LinkRow LinkColumns {
        /// The run.
        run: Label,
        /// The direction: `left>right`.
        link: Label,
        /// The time, in seconds after the start of the experiment.
        time_s: f64,
        /// Packets in the queue.
        queue_packets: u64,
        /// Bytes in the queue.
        queue_bytes: u64,
        /// The most packets in the queue since the previous row.
        queue_max_packets: u64,
        /// The most bytes in the queue since the previous row.
        queue_max_bytes: u64,
        /// Packets in the queue, averaged over the time since the previous row.
        queue_mean_packets: f64,
        /// Bytes in the queue, averaged over the time since the previous row.
        queue_mean_bytes: f64,
        /// Packets dropped because the queue was full, or by its discipline.
        dropped_packets: u64,
        /// Packets lost on the wire.
        lost_packets: u64,
        /// Packets marked instead of dropped.
        marked_packets: u64,
        /// Packets accepted for transmission. A drop-tail queue counts packets on arrival. Other
        /// disciplines may still drop queued packets, and count departures.
        sent_packets: u64,
        /// Bytes of the packets accepted for transmission.
        sent_bytes: u64,
        /// Share of the time since the previous row in which the transmitter held a packet. A
        /// stalled packet counts: in an outage, until the next opportunity of a trace, or while a
        /// link with `contention` waits for its channel. For a station of a LAN only frames count,
        /// not the wait for the medium.
        utilisation: f64,
    }

    /// One packet that was dropped or lost. On `linux` also packets that a host dropped, like
    /// duplicate data, for which `sim` has no rows.
    "drops" DropRow DropColumns {
        /// The run.
        run: Label,
        /// The time, in seconds after the start of the experiment.
        time_s: f64,
        /// The direction of a link; empty if a host dropped the packet.
        link: Option<Label>,
        /// The flow, if the packet belongs to one.
        flow: Option<Label>,
        /// The size of the packet.
        bytes: u64,
        /// The reason: `QUEUE_FULL`, `QDISC_DROP` (dropped by the queue's discipline),
        /// `LOST_ON_THE_WIRE`, `CORRUPTED` (on the wire), or the kernel's own reason.
        reason: Label,
    }

    /// One packet at one point of its path, for the links in `record.packets`.
    "packets" PacketRow PacketColumns {
        /// The run.
        run: Label,
        /// The time, in seconds after the start of the experiment.
        time_s: f64,
        /// The direction of a link: `left>right`.
        link: Label,
        /// The point on the link: `enter` (arrival at the queue), `leave` (start of transmission),
        /// `arrive` (arrival at the other end), `drop` (dropped or lost: see `drops`). On `linux`
        /// times are whole nanoseconds, and a router drops packets above the MTU before they reach
        /// a link.
        point: Label,
        /// The flow, if the packet belongs to one.
        flow: Option<Label>,
        /// The transport: `tcp`, `udp`, `icmp`.
        transport: Label,
        /// The TCP sequence number as in the header.
        seq: Option<u64>,
        /// The acknowledgment number, if the header has one.
        ack: Option<u64>,
        /// The TCP window as in the header, unscaled.
        window: Option<u64>,
        /// The TCP flags: `SYN ACK`.
        flags: Option<Label>,
        /// The ECN field, unless it is zero: `ECT(0)`, `ECT(1)` or `CE`.
        ecn: Option<Label>,
        /// Bytes of data.
        payload_bytes: u64,
        /// The size of the packet.
        bytes: u64,
    }
}

#[cfg(test)]
impl SampleRow {
    /// A row for tests that differs from others only in its number; `labels`: of the run and the
    /// flow.
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
