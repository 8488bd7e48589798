//! Transport options: where Linux keeps them, and which it lacks.
//!
//! Options with the kernel's own value (the profile `linux-6.12`) need no setting.

use serde_json::json;
use std::collections::BTreeMap;
use tcplab_guest::job::{Keepalive, SocketOptions};
use tcplab_model::{
    CongestionControl, Ecn, FlowPlan, Mistake, MtuProbing, OrOff, PathMtu, Plan, Problem, Profile,
    StackPlan, TrafficPlan, support,
};
use tcplab_units::Duration;

/// Options that Linux keeps with the route to the peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RouteOptions {
    pub initial_window: Option<u32>,
    pub min_rto_ms: Option<u32>,
    pub quick_ack: bool,
    pub initial_receive_window: Option<u32>,
    /// Only for programs, whose sockets are their own.
    pub congestion_control: Option<String>,
    /// Whether the path MTU is known from the beginning.
    pub known_mtu: bool,
}

/// The headers of IPv4 and TCP without options.
const HEADERS: u64 = 40;

/// The settings of one end of a flow.
pub(super) struct End {
    /// The namespace of its host with the end's settings.
    pub namespace: usize,
    pub route: RouteOptions,
    pub socket: SocketOptions,
}

/// An unreachable rate that is different from "no limit", which would leave pacing off.
const PACED: u64 = u64::MAX - 1;

/// The relevant differences between kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities<'a> {
    /// The kernel's congestion controls.
    pub congestion_controls: &'a [String],
    /// Whether SYN timeouts may stay constant for a while.
    pub linear_syns: bool,
}

impl<'a> Abilities<'a> {
    /// The abilities of a kernel with this release: `6.12.90`.
    pub fn new(release: &str, congestion_controls: &'a [String]) -> Self {
        let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self { congestion_controls, linear_syns: version >= (6, 5) }
    }
}

/// Settings that a namespace keeps for all its connections: files below `/proc/sys` with their
/// content.
type Settings = BTreeMap<&'static str, String>;

/// Settings of hosts, collected from the flows that begin or end there. Flows of a host with
/// different namespace-wide settings get separate namespaces.
pub(super) struct Hosts<'a> {
    kernel: Abilities<'a>,
    usual: StackPlan,
    /// The MTU of each lane.
    mtus: Vec<u64>,
    /// The namespaces of each node.
    namespaces: Vec<Vec<Settings>>,
    /// Settings common to all hosts.
    common: BTreeMap<String, String>,
}

/// Computes a file's content from a stack.
type Value = fn(&StackPlan) -> String;

/// The memory of all TCP connections of the machine, in pages: as much as on a large machine. The
/// default depends on the guest's memory, which is small, and all hosts share it.
const MEMORY: (&str, &str) = ("/proc/sys/net/ipv4/tcp_mem", "1048576 2097152 4194304");

/// Only kernels since 6.5 have this file.
const LINEAR: &str = "net/ipv4/tcp_syn_linear_timeouts";
const NOT_LINEAR: &str = "this kernel doubles the SYN timeout with each retransmission; a kernel \
                          since 6.5 can repeat it unchanged";

/// The files below `/proc/sys` that set an option for a whole namespace.
const FILES: [(&str, Value); 20] = [
    ("net/ipv4/tcp_dsack", |stack| flag(stack.dsack)),
    ("net/ipv4/tcp_sack", |stack| flag(stack.sack)),
    ("net/ipv4/tcp_timestamps", |stack| flag(stack.timestamps)),
    ("net/ipv4/tcp_window_scaling", |stack| flag(stack.window_scaling)),
    // 1: request and accept ECN; 2: accept only, the default.
    ("net/ipv4/tcp_ecn", |stack| if stack.ecn == Ecn::Off { "2" } else { "1" }.into()),
    ("net/ipv4/tcp_rmem", |stack| buffer(stack.rmem.0, 131_072)),
    ("net/ipv4/tcp_wmem", |stack| buffer(stack.wmem.0, 16_384)),
    ("net/ipv4/tcp_app_win", |stack| stack.app_win.to_string()),
    ("net/ipv4/tcp_slow_start_after_idle", |stack| flag(stack.restart_after_idle)),
    ("net/ipv4/tcp_recovery", |stack| flag(stack.rack)),
    ("net/ipv4/tcp_early_retrans", |stack| if stack.tlp { "3" } else { "0" }.into()),
    ("net/ipv4/tcp_frto", |stack| if stack.frto { "2" } else { "0" }.into()),
    ("net/ipv4/tcp_reordering", |stack| stack.dup_thresh.to_string()),
    ("net/ipv4/tcp_syn_retries", |stack| stack.syn_retries.to_string()),
    (LINEAR, |stack| stack.syn_linear_timeouts.to_string()),
    ("net/ipv4/tcp_synack_retries", |stack| stack.syn_ack_retries.to_string()),
    ("net/ipv4/tcp_retries2", |stack| stack.retries.to_string()),
    ("net/ipv4/tcp_mtu_probing", |stack| match stack.mtu_probing {
        MtuProbing::Off => "0".into(),
        MtuProbing::OnBlackHole => "1".into(),
        MtuProbing::Always => "2".into(),
    }),
    // Both sides may use Fast Open; their sockets must request it.
    ("net/ipv4/tcp_fastopen", |_| "3".into()),
    // Connections do not learn from earlier ones: each is an experiment of its own.
    ("net/ipv4/tcp_no_metrics_save", |_| "1".into()),
];

fn flag(on: bool) -> String {
    u8::from(on).to_string()
}

/// The minimum, initial and maximum size of a buffer that grows with the connection.
fn buffer(most: u64, first: u64) -> String {
    format!("{} {} {most}", most.min(4096), most.min(first))
}

impl<'a> Hosts<'a> {
    pub fn new(plan: &Plan, kernel: Abilities<'a>) -> Self {
        let usual = Profile::Linux612.options();
        let common = BTreeMap::from([(MEMORY.0.into(), MEMORY.1.into())]);
        let namespaces = vec![Vec::new(); plan.nodes.len()];
        let mtus = plan.lanes.iter().map(|lane| lane.mtu).collect();
        Self { kernel, usual, mtus, namespaces, common }
    }

    /// The settings of each end of a flow, sender first.
    pub fn ends(&mut self, flow: &FlowPlan, mistakes: &mut Vec<Mistake>) -> [End; 2] {
        let Some(tcp) = flow.tcp() else {
            // Datagrams are fragmented to fit the whole path.
            let route = RouteOptions { known_mtu: true, ..RouteOptions::default() };
            return [(); 2].map(|()| End {
                namespace: 0,
                route: route.clone(),
                socket: SocketOptions::default(),
            });
        };
        let mut sender = self.stack(flow.from, &tcp.stack, flow, mistakes);
        let mut receiver = self.stack(flow.to, &tcp.peer_stack, flow, mistakes);
        let cc = algorithm(&tcp.stack.cc, flow, self.kernel.congestion_controls, mistakes);
        // The DCTCP receiver echoes marks in its own way, which its listening socket must select.
        // A client of requests sends too.
        let both = cc == "dctcp"
            || matches!(&*flow.traffic, TrafficPlan::Requests(_) | TrafficPlan::Web(_));
        receiver.socket.congestion_control = both.then(|| cc.clone());
        if matches!(&*flow.traffic, TrafficPlan::Command(_)) {
            // A route's congestion control would override the program's choice, so the kernel's
            // default is left to it.
            let peer_cc =
                algorithm(&tcp.peer_stack.cc, flow, self.kernel.congestion_controls, mistakes);
            let usual = &self.usual.cc.name;
            sender.route.congestion_control = (cc != *usual).then(|| cc.clone());
            receiver.route.congestion_control = (peer_cc != *usual).then_some(peer_cc);
        }
        sender.socket.congestion_control = Some(cc);
        [sender, receiver]
    }

    /// The settings of a flow's end at this node; records those of its host.
    fn stack(
        &mut self,
        node: usize,
        stack: &StackPlan,
        flow: &FlowPlan,
        mistakes: &mut Vec<Mistake>,
    ) -> End {
        let place = |option: &str| format!("{}.stack.{option}", flow.place);
        let mut found = Vec::new();
        // Values of the profile `linux-6.12` need no setting.
        let is_linear_known = self.kernel.linear_syns
            || [0, self.usual.syn_linear_timeouts].contains(&stack.syn_linear_timeouts);
        if !is_linear_known {
            found.push(Problem::Invalid(NOT_LINEAR.into()).at(place("syn_linear_timeouts")));
        }
        let has_linear = self.kernel.linear_syns;
        let files = FILES.into_iter().filter(|(file, _)| *file != LINEAR || has_linear);
        let settings = files.map(|(file, value)| (file, value(stack))).collect();
        let known = &mut self.namespaces[node];
        let namespace = known.iter().position(|it| *it == settings).unwrap_or_else(|| {
            known.push(settings);
            known.len() - 1
        });
        // The kernel has these for all namespaces together.
        for (option, most) in [("rmem_max", stack.rmem_max), ("wmem_max", stack.wmem_max)] {
            let file = format!("/proc/sys/net/core/{option}");
            self.set_for_all(file, &most.0.to_string(), &place(option), &mut found);
        }
        if stack.cc.name == "cubic" && node == flow.from {
            let file = "/sys/module/tcp_cubic/parameters/hystart".into();
            self.set_for_all(file, &flag(stack.hystart), &place("hystart"), &mut found);
        }
        if node == flow.from {
            self.parameters(stack, flow, &mut found);
        }
        // Segments are limited to the path MTU, as far as the host knows it before sending.
        let way = if node == flow.from { &flow.forward } else { &flow.back };
        let mtu = match stack.path_mtu {
            PathMtu::Known => flow.mtu,
            PathMtu::Discovered => way.first().map_or(flow.mtu, |&lane| self.mtus[lane]),
        };
        // Flows from one description share its mistakes.
        found.retain(|mistake| !mistakes.contains(mistake));
        mistakes.append(&mut found);
        End {
            namespace,
            route: RouteOptions {
                initial_window: (stack.initial_window != self.usual.initial_window)
                    .then_some(stack.initial_window as u32),
                min_rto_ms: (stack.min_rto != self.usual.min_rto).then_some(millis(stack.min_rto)),
                quick_ack: stack.delayed_ack == OrOff::Off || stack.ack_every == 1,
                initial_receive_window: stack.initial_receive_window.on().map(|it| it as u32),
                congestion_control: None,
                known_mtu: stack.path_mtu == PathMtu::Known,
            },
            socket: SocketOptions {
                congestion_control: None,
                pacing: match stack.max_pacing_rate.on() {
                    Some(rate) => Some(rate.bits_per_second() / 8),
                    None => stack.pacing.then_some(PACED),
                },
                no_delay: !stack.nagle,
                max_segment: (stack.mss < mtu - HEADERS).then_some(stack.mss as u32),
                receive_buffer: stack.so_rcvbuf.on().map(|bytes| bytes.0 as u32),
                send_buffer: stack.so_sndbuf.on().map(|bytes| bytes.0 as u32),
                window_clamp: stack.window_clamp.on().map(|bytes| bytes.0 as u32),
                most_unsent: stack.notsent_lowat.on().map(|bytes| bytes.0 as u32),
                user_timeout_ms: stack.user_timeout.on().map(millis),
                keepalive: stack.keepalive.on().map(|keepalive| Keepalive {
                    idle_s: seconds(keepalive.idle),
                    interval_s: seconds(keepalive.interval),
                    probes: keepalive.probes as u32,
                }),
                fast_open: stack.fast_open,
            },
        }
    }

    /// The parameters of a congestion control, which Linux keeps for all hosts together.
    fn parameters(&mut self, stack: &StackPlan, flow: &FlowPlan, found: &mut Vec<Mistake>) {
        let Some(params) = stack.cc.params.as_object() else { return };
        let module = kernel_name(&stack.cc.name);
        for (name, value) in params {
            let place = format!("{}.cc.{name}", flow.place);
            let (name, value) = &in_kernel(module, name, value);
            // A user's congestion control has the parameters of its module.
            let known = PARAMETERS.iter().find(|(known, _)| *known == module).map(|it| it.1);
            if known.is_some_and(<[_]>::is_empty) {
                let reason = "cannot be set here: this algorithm has no parameters in the kernel. It runs on \
                              `sim`";
                found.push(Problem::Invalid(reason.into()).at(place));
                continue;
            }
            if let Some(known) = known.filter(|known| !known.contains(&name.as_str())) {
                let known = known.iter().copied();
                found.push(Problem::unknown("parameter in the kernel", name, known).at(place));
                continue;
            }
            // Modules use 1 and 0 for booleans, and 32-bit numbers.
            let number = value.as_i64().or_else(|| value.as_bool().map(i64::from));
            let Some(value) = number.filter(|number| (0..=i64::from(i32::MAX)).contains(number))
            else {
                let reason =
                    "is a parameter of a kernel module here: a whole number from 0 to 2147483647";
                found.push(Problem::Invalid(reason.into()).at(place));
                continue;
            };
            let file = format!("/sys/module/tcp_{module}/parameters/{name}");
            self.set_for_all(file, &value.to_string(), &place, found);
        }
    }

    fn set_for_all(&mut self, file: String, value: &str, place: &str, found: &mut Vec<Mistake>) {
        let known = self.common.entry(file).or_insert_with(|| value.into());
        if *known != value {
            let reason = "differs between flows; Linux has one for the whole machine";
            found.push(Problem::Invalid(reason.into()).at(place));
        }
    }

    /// The common settings, and those of each host's namespaces: at least one.
    #[expect(clippy::type_complexity, reason = "two lists of files and values")]
    pub fn settings(self) -> (Vec<(String, String)>, Vec<Vec<Vec<(String, String)>>>) {
        let plain = |settings: Settings| {
            settings.into_iter().map(|(file, value)| (file.into(), value)).collect()
        };
        let host = |mut namespaces: Vec<Settings>| {
            if namespaces.is_empty() {
                namespaces.push(Settings::new());
            }
            namespaces.into_iter().map(plain).collect()
        };
        let hosts = self.namespaces.into_iter().map(host).collect();
        (self.common.into_iter().collect(), hosts)
    }
}

/// A parameter as the kernel has it: CUBIC's `beta` and `c` are shares and reals in the standard,
/// and parts of 1024 in the kernel.
fn in_kernel(module: &str, name: &str, value: &serde_json::Value) -> (String, serde_json::Value) {
    let parts = |scale: f64| value.as_f64().map(|number| json!((number * scale).round() as i64));
    let converted = match (module, name, value.as_f64()) {
        ("cubic", "beta", Some(share)) if share <= 1.0 => ("beta", parts(1024.0)),
        // Ten of 1024 for each segment per second cubed.
        ("cubic", "c", _) => ("bic_scale", parts(102.4)),
        ("cubic", "tcp_friendly", _) => ("tcp_friendliness", Some(value.clone())),
        _ => return (name.into(), value.clone()),
    };
    (converted.0.into(), converted.1.unwrap_or_else(|| value.clone()))
}

/// The parameters of the kernel's congestion controls.
const PARAMETERS: [(&str, &[&str]); 17] = [
    ("bbr", &[]),
    (
        "bic",
        &[
            "beta",
            "fast_convergence",
            "initial_ssthresh",
            "low_window",
            "max_increment",
            "smooth_part",
        ],
    ),
    (
        "cdg",
        &[
            "backoff_beta",
            "backoff_factor",
            "hystart_detect",
            "use_ineff",
            "use_shadow",
            "use_tolerance",
            "window",
        ],
    ),
    (
        "cubic",
        &[
            "beta",
            "bic_scale",
            "fast_convergence",
            "hystart",
            "hystart_ack_delta_us",
            "hystart_detect",
            "hystart_low_window",
            "initial_ssthresh",
            "tcp_friendliness",
        ],
    ),
    ("dctcp", &["dctcp_alpha_on_init", "dctcp_shift_g"]),
    ("highspeed", &[]),
    ("htcp", &["use_bandwidth_switch", "use_rtt_scaling"]),
    ("hybla", &["rtt0"]),
    ("illinois", &["theta", "win_thresh"]),
    ("lp", &[]),
    ("nv", &["nv_min_cwnd", "nv_pad", "nv_reset_period"]),
    ("reno", &[]),
    ("scalable", &[]),
    ("vegas", &["alpha", "beta", "gamma"]),
    ("veno", &[]),
    ("westwood", &[]),
    ("yeah", &[]),
];

/// Rounds to the next millisecond, at least 1.
fn millis(time: Duration) -> u32 {
    (time.as_picos() / 1_000_000_000).clamp(1, u64::from(u32::MAX)) as u32
}

fn seconds(time: Duration) -> u32 {
    (time.as_picos() / SECOND.as_picos()).min(u64::from(u32::MAX)) as u32
}

const SECOND: Duration = Duration::from_secs(1);

/// The kernel's name of a congestion control.
fn kernel_name(name: &str) -> &str {
    match name {
        "newreno" => "reno",
        "westwood+" => "westwood",
        other => other,
    }
}

/// The congestion control of a flow, which the kernel must have.
fn algorithm(
    cc: &CongestionControl,
    flow: &FlowPlan,
    known: &[String],
    mistakes: &mut Vec<Mistake>,
) -> String {
    let name = cc.name.as_str();
    let mut add = |problem: Problem| {
        let mistake = problem.at(format!("{}.cc", flow.place));
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    };
    if name.contains('/') {
        add(support::missing("cc.presets", None, crate::NAME));
    }
    let (algorithm, name) = (cc.algorithm(), kernel_name(cc.algorithm()));
    // The kernel calls another algorithm `westwood`; any other name may be that of a user's module.
    if algorithm == "westwood" || !known.iter().any(|one| one == name) {
        let known = known.iter().map(String::as_str);
        add(support::find("cc", algorithm).map_or_else(
            || Problem::unknown("congestion control of this kernel", name, known),
            |feature| support::missing(feature.key, feature.kind, crate::NAME),
        ));
    }
    name.into()
}
