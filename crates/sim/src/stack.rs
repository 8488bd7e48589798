//! Translates the stack of a plan into settings of an endpoint.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tcplab_cc::{
    BuildError, CongestionControl, CutBase, Flavour, Init, Marks, Origin, Params, resolve,
};
use tcplab_model::{
    AckCounting, CongestionControl as CongestionControlPlan, CutBase as PlannedBase,
    Ecn as PlannedEcn, Flavour as PlannedFlavour, FlowPlan, MtuProbing as PlannedProbing, OrOff,
    PathMtu, Plan, Recovery as PlannedRecovery, Reduction as PlannedReduction, StackPlan,
};
use tcplab_tcp::{
    AckCounting as Counting, BuildControl, Capable, Ecn, Feedback, IP_HEADER, Keepalive,
    LossRecovery, MtuProbing, Settings, Start, TCP_HEADER, WindowReduction,
};
use tcplab_units::Bytes;

/// The least memory of a packet (`TCP_SKB_MIN_TRUESIZE`): the minimum receive buffer, and half the
/// minimum send buffer.
const LEAST_PACKET: u64 = 2304;

/// State shared by endpoints with equal stacks.
#[derive(Clone, Default)]
pub(crate) struct Stacks {
    known: BTreeMap<(*const StackPlan, u64, u8), (Arc<Settings>, BuildControl)>,
}

impl Stacks {
    /// The settings and the congestion control of an endpoint with this stack, on a path with an
    /// MSS of `mss_limit`, in a flow with this use of marks.
    pub fn get(
        &mut self,
        stack: &Arc<StackPlan>,
        mss_limit: u64,
        marks: Marks,
    ) -> (Arc<Settings>, BuildControl) {
        let make = || (Arc::new(settings(stack, mss_limit, marks)), build_control(stack));
        let (settings, control) =
            self.known.entry((Arc::as_ptr(stack), mss_limit, marks as u8)).or_insert_with(make);
        (Arc::clone(settings), Arc::clone(control))
    }
}

/// The largest segment payload that the path of one end allows, as far as the end knows before it
/// sends.
pub(crate) fn mss_limit(plan: &Plan, flow: &FlowPlan, stack: &StackPlan, lanes: &[usize]) -> u64 {
    let mtu = match stack.path_mtu {
        PathMtu::Known => flow.mtu,
        PathMtu::Discovered => lanes.first().map_or(flow.mtu, |&lane| plan.lanes[lane].mtu),
    };
    mtu - u64::from(IP_HEADER + TCP_HEADER)
}

/// The use of congestion marks by the congestion control of this stack.
pub(crate) fn marks(stack: &StackPlan) -> Marks {
    match resolve(&stack.cc.name, &Params::default()) {
        Ok((Origin::Table(algorithm), _)) => algorithm.marks,
        _ => Marks::AsSet,
    }
}

/// The settings of an endpoint with this stack, on a path with an MSS of `mss_limit`, in a flow
/// with this use of marks.
pub fn settings(stack: &StackPlan, mss_limit: u64, marks: Marks) -> Settings {
    let asked = |bytes: OrOff<Bytes>, most: Bytes| bytes.on().map(|bytes| bytes.min(most).0);
    let receive_buffer = asked(stack.so_rcvbuf, stack.rmem_max);
    let send_buffer = asked(stack.so_sndbuf, stack.wmem_max);
    let max_pacing_rate = stack.max_pacing_rate.on();
    // The kernel doubles the requested size (`sk_setsockopt`).
    let fixed = |asked: Option<u64>, least: u64| {
        asked.filter(|_| stack.flavour == PlannedFlavour::Linux).map(|it| (2 * it).max(least))
    };
    Settings {
        behaviour: flavour(stack).into(),
        mss: stack.mss.min(mss_limit).min(u64::from(u16::MAX)) as u16,
        sack: stack.sack,
        dsack: stack.dsack,
        timestamps: stack.timestamps,
        window_scaling: stack.window_scaling,
        ecn: match (stack.ecn != PlannedEcn::Off || marks != Marks::AsSet, stack.flavour) {
            (true, _) => Ecn::Asks,
            // `tcp_ecn` = 2.
            (false, PlannedFlavour::Linux) => Ecn::Answers,
            (false, PlannedFlavour::Rfc) => Ecn::Off,
        },
        feedback: match (marks, stack.ecn) {
            (Marks::Echoed, _) => Feedback::Changes,
            (Marks::Counted, _) | (Marks::AsSet, PlannedEcn::Accurate) => Feedback::Accurate,
            (Marks::AsSet, PlannedEcn::Off | PlannedEcn::Classic) => Feedback::Classic,
        },
        capable: match marks {
            Marks::AsSet => Capable::NewData,
            Marks::Echoed => Capable::All,
            Marks::Counted => Capable::AllScalable,
        },
        nagle: stack.nagle,
        limited_transmit: stack.limited_transmit,
        rack: stack.rack,
        tlp: stack.tlp,
        recovery: match stack.recovery {
            PlannedRecovery::Tahoe => LossRecovery::Tahoe,
            PlannedRecovery::Reno => LossRecovery::Reno,
            PlannedRecovery::NewReno => LossRecovery::NewReno,
            PlannedRecovery::NewRenoSteady => LossRecovery::NewRenoSteady,
        },
        fack: stack.fack,
        reduction: match stack.reduction {
            PlannedReduction::AtOnce => WindowReduction::AtOnce,
            PlannedReduction::Halving => WindowReduction::Halving,
            PlannedReduction::Proportional => WindowReduction::Proportional,
        },
        frto: stack.frto,
        undo: stack.undo,
        tso: stack.tso,
        // RFC 9331 §4.3: unpaced bursts would be marked.
        pacing: stack.pacing || max_pacing_rate.is_some() || marks == Marks::Counted,
        max_pacing_rate,
        restart_after_idle: stack.restart_after_idle,
        delayed_ack: match stack.delayed_ack {
            OrOff::On(delay) => Some(delay),
            OrOff::Off => None,
        },
        ack_every: stack.ack_every.min(u64::from(u32::MAX)) as u32,
        quick_ack: stack.quick_ack.min(u64::from(u32::MAX)) as u32,
        initial_window: stack.initial_window,
        counting: match stack.abc {
            AckCounting::Ack => Counting::PerAck,
            AckCounting::Segment => Counting::PerSegment,
            AckCounting::Byte { limit } => Counting::PerByte { limit: limit as u32 },
        },
        dup_thresh: stack.dup_thresh.min(u64::from(u32::MAX)) as u32,
        initial_rto: stack.initial_rto,
        min_rto: stack.min_rto.min(stack.max_rto),
        max_rto: stack.max_rto,
        receive_buffer: receive_buffer
            .filter(|_| stack.flavour == PlannedFlavour::Rfc)
            .unwrap_or(stack.rmem.0),
        window_clamp: stack.window_clamp.on().map(|clamp| clamp.0),
        initial_receive_window: stack.initial_receive_window.on(),
        app_win: stack.app_win as u32,
        send_buffer: send_buffer.unwrap_or(stack.wmem.0),
        most_unsent: stack.notsent_lowat.on().map(|bytes| bytes.0),
        fixed_receive_buffer: fixed(receive_buffer, LEAST_PACKET),
        fixed_send_buffer: fixed(send_buffer, 2 * LEAST_PACKET),
        rmem_max: stack.rmem_max.0,
        syn_retries: stack.syn_retries as u32,
        syn_linear_timeouts: stack.syn_linear_timeouts as u32,
        syn_ack_retries: stack.syn_ack_retries as u32,
        retries: stack.retries as u32,
        user_timeout: stack.user_timeout.on(),
        keepalive: stack.keepalive.on().map(|planned| Keepalive {
            idle: planned.idle,
            interval: planned.interval,
            probes: planned.probes as u32,
        }),
        mtu_probing: match stack.mtu_probing {
            PlannedProbing::Off => MtuProbing::Off,
            PlannedProbing::OnBlackHole => MtuProbing::OnBlackHole,
            PlannedProbing::Always => MtuProbing::Always,
        },
        time_wait: stack.time_wait,
    }
}

fn flavour(stack: &StackPlan) -> Flavour {
    match stack.flavour {
        PlannedFlavour::Rfc => Flavour::Rfc,
        PlannedFlavour::Linux => Flavour::Linux,
    }
}

/// The congestion control's origin and its parameters: those of its preset, the given ones, and
/// those that are options of the stack.
fn control(stack: &StackPlan) -> Result<(Origin, Params), BuildError> {
    let (origin, mut params) = resolve(&stack.cc.name, &Params(stack.cc.params.clone()))?;
    if let Value::Object(given) = &mut params.0
        && origin.has_parameter("hystart")
    {
        given.entry("hystart").or_insert(Value::Bool(stack.hystart));
    }
    Ok((origin, params))
}

/// Builds the congestion control of endpoints with this stack, as they would.
pub(crate) fn try_build(
    stack: &StackPlan,
    init: &Init,
) -> Result<Box<dyn CongestionControl>, BuildError> {
    let (origin, params) = control(stack)?;
    origin.build(init, &params)
}

/// The version of a congestion control, if it is a registered one.
pub(crate) fn version(cc: &CongestionControlPlan) -> Option<String> {
    let (origin, _) = resolve(&cc.name, &Params::default()).ok()?;
    origin.version().map(|version| format!("{}-{version}", cc.name))
}

/// Builds the congestion control of endpoints with this stack, which must have passed `try_build`.
pub fn build_control(stack: &StackPlan) -> BuildControl {
    let cut_base = match stack.cut_base {
        PlannedBase::Cwnd => CutBase::Cwnd,
        PlannedBase::FlightSize => CutBase::FlightSize,
    };
    let flavour = flavour(stack);
    let max_pacing = stack.max_pacing_rate.on();
    let (origin, params) = control(stack).expect("a plan with another algorithm is refused");
    Arc::new(move |Start { mss, initial_window, seed }: Start| {
        let init = Init { mss, initial_window, cut_base, flavour, seed, max_pacing };
        origin.build(&init, &params).expect("a plan with other parameters is refused")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_model::Profile;

    #[test]
    fn linux_doubles_requested_buffers_up_to_the_maximum() {
        let settings_of = |profile: Profile, asked: u64, most: u64| {
            let mut stack = profile.options();
            (stack.so_rcvbuf, stack.rmem_max) = (OrOff::On(Bytes(asked)), Bytes(most));
            (stack.so_sndbuf, stack.wmem_max) = (OrOff::On(Bytes(asked)), Bytes(most));
            settings(&stack, 1460, Marks::AsSet)
        };
        let fixed = |asked| {
            let settings = settings_of(Profile::Linux612, asked, 100_000);
            (settings.fixed_receive_buffer, settings.fixed_send_buffer)
        };
        assert_eq!(fixed(64_000), (Some(128_000), Some(128_000)));
        assert_eq!(fixed(1 << 20), (Some(200_000), Some(200_000)));
        // SOCK_MIN_RCVBUF, SOCK_MIN_SNDBUF.
        assert_eq!(fixed(1000), (Some(2304), Some(4608)));
        // With other profiles a buffer is counted in bytes.
        let rfc = settings_of(Profile::Rfc, 1 << 20, 100_000);
        assert_eq!((rfc.receive_buffer, rfc.send_buffer), (100_000, 100_000));
        assert_eq!((rfc.fixed_receive_buffer, rfc.fixed_send_buffer), (None, None));
    }
}
