//! Transport options: where Linux keeps them, and which it does not have.
//!
//! Options that are as the kernel has them anyway (the profile `linux-6.12`) need nothing.

use super::not_here;
use std::collections::BTreeMap;
use tcplab_guest::job::{Keepalive, SocketOptions};
use tcplab_model::{
    AckCounting, CongestionControl, Ecn, FlowPlan, Mistake, MtuProbing, OrOff, PathMtu, Plan,
    Problem, Profile, StackPlan, TrafficPlan,
};
use tcplab_units::{Bytes, Duration};

/// Options that Linux keeps with the route to the peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RouteOptions {
    pub initial_window: Option<u32>,
    pub min_rto_ms: Option<u32>,
    pub quick_ack: bool,
    /// How large packets may be on the way is known from the beginning.
    pub known_mtu: bool,
}

/// The headers of IPv4 and TCP without options.
const HEADERS: u64 = 40;

/// What one end of a flow needs.
pub(super) struct End {
    pub route: RouteOptions,
    pub socket: SocketOptions,
}

/// What tells the kernel of a run from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities<'a> {
    /// The congestion controls it has.
    pub congestion_controls: &'a [String],
    /// Whether the timeouts of a SYN may stay as they are for a while.
    pub linear_syns: bool,
}

impl<'a> Abilities<'a> {
    /// Those of a kernel of this release: `6.12.90`.
    pub fn new(release: &str, congestion_controls: &'a [String]) -> Self {
        let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self { congestion_controls, linear_syns: version >= (6, 5) }
    }
}

/// Settings of hosts, collected from the flows that begin or end there.
pub(super) struct Hosts<'a> {
    plan: &'a Plan,
    kernel: Abilities<'a>,
    usual: StackPlan,
    /// By node and file: what is to be written.
    settings: BTreeMap<(usize, &'static str), String>,
    /// The same for all hosts.
    common: BTreeMap<String, String>,
}

/// What an option makes of a stack for such a file.
type Value = fn(&StackPlan) -> String;

/// What the connections of the machine may take together, in pages: as much as those of a large one. By
/// default it follows the guest's memory, which is small, and all hosts share it.
const MEMORY: (&str, &str) = ("/proc/sys/net/ipv4/tcp_mem", "1048576 2097152 4194304");

/// Only kernels since 6.5 have this one.
const LINEAR: &str = "net/ipv4/tcp_syn_linear_timeouts";

/// The files below `/proc/sys` that set an option for a host as a whole.
const FILES: [(&str, &str, Value); 20] = [
    ("dsack", "net/ipv4/tcp_dsack", |stack| flag(stack.dsack)),
    ("sack", "net/ipv4/tcp_sack", |stack| flag(stack.sack)),
    ("timestamps", "net/ipv4/tcp_timestamps", |stack| flag(stack.timestamps)),
    ("window_scaling", "net/ipv4/tcp_window_scaling", |stack| flag(stack.window_scaling)),
    // 1: ask for it and answer; 2: answer, as is usual.
    ("ecn", "net/ipv4/tcp_ecn", |stack| if stack.ecn == Ecn::Off { "2" } else { "1" }.into()),
    ("rmem", "net/ipv4/tcp_rmem", |stack| buffer(stack.rmem.0, 131_072)),
    ("wmem", "net/ipv4/tcp_wmem", |stack| buffer(stack.wmem.0, 16_384)),
    ("app_win", "net/ipv4/tcp_app_win", |stack| stack.app_win.to_string()),
    ("restart_after_idle", "net/ipv4/tcp_slow_start_after_idle", |stack| {
        flag(stack.restart_after_idle)
    }),
    ("rack", "net/ipv4/tcp_recovery", |stack| flag(stack.rack)),
    ("tlp", "net/ipv4/tcp_early_retrans", |stack| if stack.tlp { "3" } else { "0" }.into()),
    ("frto", "net/ipv4/tcp_frto", |stack| if stack.frto { "2" } else { "0" }.into()),
    ("dup_thresh", "net/ipv4/tcp_reordering", |stack| stack.dup_thresh.to_string()),
    ("syn_retries", "net/ipv4/tcp_syn_retries", |stack| stack.syn_retries.to_string()),
    ("syn_linear_timeouts", LINEAR, |stack| stack.syn_linear_timeouts.to_string()),
    ("syn_ack_retries", "net/ipv4/tcp_synack_retries", |stack| stack.syn_ack_retries.to_string()),
    ("retries", "net/ipv4/tcp_retries2", |stack| stack.retries.to_string()),
    ("mtu_probing", "net/ipv4/tcp_mtu_probing", |stack| match stack.mtu_probing {
        MtuProbing::Off => "0".into(),
        MtuProbing::OnBlackHole => "1".into(),
        MtuProbing::Always => "2".into(),
    }),
    // Both sides may, and their sockets have to ask.
    ("", "net/ipv4/tcp_fastopen", |_| "3".into()),
    // Connections do not learn from those before them: each is an experiment of its own.
    ("", "net/ipv4/tcp_no_metrics_save", |_| "1".into()),
];

fn flag(on: bool) -> String {
    u8::from(on).to_string()
}

/// The least, the first and the most of a buffer that grows with the connection.
fn buffer(most: u64, first: u64) -> String {
    format!("{} {} {most}", most.min(4096), most.min(first))
}

impl<'a> Hosts<'a> {
    pub fn new(plan: &'a Plan, kernel: Abilities<'a>) -> Self {
        let usual = Profile::Linux612.options();
        let common = BTreeMap::from([(MEMORY.0.into(), MEMORY.1.into())]);
        Self { plan, kernel, usual, settings: BTreeMap::new(), common }
    }

    /// What each end of a flow needs, that of the sender first.
    pub fn ends(&mut self, flow: &FlowPlan, mistakes: &mut Vec<Mistake>) -> [End; 2] {
        let Some(tcp) = flow.tcp() else {
            // Datagrams leave in fragments that fit the whole way.
            let route = RouteOptions { known_mtu: true, ..RouteOptions::default() };
            return [(); 2]
                .map(|()| End { route: route.clone(), socket: SocketOptions::default() });
        };
        let mut sender = self.stack(flow.from, &tcp.stack, flow, mistakes);
        let mut receiver = self.stack(flow.to, &tcp.peer_stack, flow, mistakes);
        let cc = algorithm(&tcp.stack.cc, flow, self.kernel.congestion_controls, mistakes);
        // Its receiver answers marks in its own way, and listens for that.
        // One that asks sends too.
        let both = cc == "dctcp"
            || matches!(&*flow.traffic, TrafficPlan::Requests(_) | TrafficPlan::Web(_));
        receiver.socket.congestion_control = both.then(|| cc.clone());
        sender.socket.congestion_control = Some(cc);
        [sender, receiver]
    }

    /// What the end of a flow at this node needs; notes what its host needs.
    fn stack(
        &mut self,
        node: usize,
        stack: &StackPlan,
        flow: &FlowPlan,
        mistakes: &mut Vec<Mistake>,
    ) -> End {
        let place = |option: &str| format!("{}.stack.{option}", flow.place);
        let mut found: Vec<Mistake> = impossible(stack, &self.usual, self.kernel)
            .into_iter()
            .chain(too_fine(stack))
            .map(|(option, problem)| problem.at(place(option)))
            .collect();
        for (option, file, value) in FILES {
            if file == LINEAR && !self.kernel.linear_syns {
                continue;
            }
            let value = value(stack);
            let known = self.settings.entry((node, file)).or_insert_with(|| value.clone());
            if *known != value {
                let host = &self.plan.nodes[node];
                let reason = format!(
                    "differs between flows of the host \"{host}\"; Linux has one `{option}` for all \
                     connections of a host"
                );
                found.push(Problem::Invalid(reason).at(place(option)));
            }
        }
        if stack.cc.name == "cubic" && node == flow.from {
            let file = "/sys/module/tcp_cubic/parameters/hystart".into();
            self.set_for_all(file, &flag(stack.hystart), &place("hystart"), &mut found);
        }
        if node == flow.from {
            self.parameters(stack, flow, &mut found);
        }
        // Flows made by one description share its mistakes.
        found.retain(|mistake| !mistakes.contains(mistake));
        mistakes.append(&mut found);
        End {
            route: RouteOptions {
                initial_window: (stack.initial_window != self.usual.initial_window)
                    .then_some(stack.initial_window as u32),
                min_rto_ms: (stack.min_rto != self.usual.min_rto).then_some(millis(stack.min_rto)),
                quick_ack: stack.delayed_ack == OrOff::Off || stack.ack_every == 1,
                known_mtu: stack.path_mtu == PathMtu::Known,
            },
            socket: SocketOptions {
                congestion_control: None,
                pacing: stack.pacing,
                no_delay: !stack.nagle,
                max_segment: (stack.mss < flow.mtu - HEADERS).then_some(stack.mss as u32),
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
            // A congestion control of the user's own has what its module says.
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
            // Modules say yes and no as 1 and 0, and count in 32 bits.
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

    /// The settings for all hosts, and those of each.
    #[expect(clippy::type_complexity, reason = "two lists of files and values")]
    pub fn settings(&self) -> (Vec<(String, String)>, Vec<Vec<(String, String)>>) {
        let common = self.common.iter().map(|(file, value)| (file.clone(), value.clone()));
        let mut hosts = vec![Vec::new(); self.plan.nodes.len()];
        for ((node, file), value) in &self.settings {
            hosts[*node].push((String::from(*file), value.clone()));
        }
        (common.collect(), hosts)
    }
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

/// To the next millisecond, 1 at least.
fn millis(time: Duration) -> u32 {
    (time.as_picos() / 1_000_000_000).clamp(1, u64::from(u32::MAX)) as u32
}

fn seconds(time: Duration) -> u32 {
    (time.as_picos() / SECOND.as_picos()).min(u64::from(u32::MAX)) as u32
}

const SECOND: Duration = Duration::from_secs(1);
/// `MAX_TCP_KEEPIDLE` and `MAX_TCP_KEEPINTVL`, and what `TCP_USER_TIMEOUT` takes: an int.
const LONGEST_KEEPALIVE: Duration = Duration::from_secs(32_767);
const LONGEST_USER_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// The kernel takes no less for `tcp_rmem`.
const LEAST_RMEM: Bytes = Bytes(4096);

/// Sizes below what Linux takes, and times that it counts in larger units, or not up to there.
fn too_fine(stack: &StackPlan) -> Vec<(&'static str, Problem)> {
    let whole = |time: Duration, unit: Duration| time.as_picos().is_multiple_of(unit.as_picos());
    let mut found = Vec::new();
    if stack.rmem < LEAST_RMEM {
        found.push(("rmem", not_here("a receive buffer of less than 4096 B")));
    }
    if let Some(time) = stack.user_timeout.on()
        && (!whole(time, Duration::from_millis(1)) || time > LONGEST_USER_TIMEOUT)
    {
        let what = "a user timeout that is no number of milliseconds, or longer than 24 days,";
        found.push(("user_timeout", not_here(what)));
    }
    if let Some(keepalive) = stack.keepalive.on() {
        let times =
            [("keepalive.idle", keepalive.idle), ("keepalive.interval", keepalive.interval)];
        for (option, time) in times {
            if !whole(time, SECOND) || time > LONGEST_KEEPALIVE {
                let what = "a time of keepalives that is no number of seconds up to 32767";
                found.push((option, not_here(what)));
            }
        }
    }
    found
}

/// What a kernel of our time does not let one choose.
fn impossible(
    stack: &StackPlan,
    usual: &StackPlan,
    kernel: Abilities<'_>,
) -> Vec<(&'static str, Problem)> {
    let is_delay_usual = stack.delayed_ack == usual.delayed_ack || stack.delayed_ack == OrOff::Off;
    // What the profile `linux-6.12` has is not asked for.
    let is_linear_known =
        kernel.linear_syns || [0, usual.syn_linear_timeouts].contains(&stack.syn_linear_timeouts);
    // With SACK it makes no difference.
    let is_recovery_usual = stack.sack || stack.recovery == usual.recovery;
    let checks = [
        ("fack", !stack.fack, "FACK (gone from Linux since 4.15)"),
        ("recovery", is_recovery_usual, "another recovery without SACK than \"newreno-steady\""),
        ("ecn", stack.ecn != Ecn::Accurate, "feedback that counts marks (RFC 9768)"),
        ("abc", stack.abc == AckCounting::Segment, "another way of counting ACKs than by segment"),
        ("delayed_ack", is_delay_usual, "another delay of ACKs than 40 ms or \"off\""),
        ("ack_every", matches!(stack.ack_every, 1 | 2), "an ACK for every so many segments"),
        ("quick_ack", stack.quick_ack == usual.quick_ack, "another number of quick ACKs than 16"),
        (
            "syn_linear_timeouts",
            is_linear_known,
            "a SYN that is repeated without doubling its timeout (Linux has it since 6.5)",
        ),
        ("max_rto", stack.max_rto == usual.max_rto, "another longest timeout than 120 s"),
        ("initial_rto", stack.initial_rto == usual.initial_rto, "another first timeout than 1 s"),
        ("limited_transmit", stack.limited_transmit, "going without limited transmit"),
        (
            "reduction",
            stack.reduction == usual.reduction,
            "another reduction than \"proportional\"",
        ),
        (
            "mem",
            stack.mem == OrOff::Off,
            "a limit to the memory of one host (tcp_mem is that of the machine, and all hosts are one)",
        ),
        ("undo", stack.undo, "going without undo"),
        ("tso", stack.tso, "going without bursts"),
        ("flavour", stack.flavour == usual.flavour, "another flavour than its own"),
        ("cut_base", stack.cut_base == usual.cut_base, "a cut from anything but the window"),
        ("time_wait", stack.time_wait == usual.time_wait, "another TIME-WAIT than 60 s"),
    ];
    let failed = checks.into_iter().filter(|(_, is_fine, _)| !is_fine);
    failed.map(|(option, _, what)| (option, not_here(what))).collect()
}

/// What the kernel calls a congestion control.
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
    if name.contains('/') || name == "westwood" {
        let reason = if name == "westwood" {
            "is the algorithm of 2002, which only `sim` has; the kernel's is `westwood+`"
        } else {
            "has a preset, and only `sim` has those; the kernel's parameters are given by name"
        };
        let mistake = Problem::Invalid(reason.into()).at(format!("{}.cc", flow.place));
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
    let name = kernel_name(cc.algorithm());
    if !known.iter().any(|one| one == name) {
        let known = known.iter().map(String::as_str);
        let mistake = Problem::unknown("congestion control of this kernel", name, known)
            .at(format!("{}.cc", flow.place));
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
    name.into()
}
