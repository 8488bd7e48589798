//! CUBIC: after a loss, the window returns to its old size along a cubic function of time, which is
//! flat near the old size and then rises again.
//!
//! - RFC 9438: everything here, with its names; a bare § is one of its sections. Windows are in
//!   segments, times in seconds.
//! - RFC 9406: `HyStart++` ends the first slow start, as §4.10 recommends.
//! - Ha, Rhee, Xu: CUBIC: a new TCP-friendly high-speed TCP variant, 2008.
//!
//! With the Linux flavour, CUBIC is computed as in the kernel: `kernel`.
//!
//! The window is in whole segments; growth by less than one is kept as credit (`Window::grow`).

use crate::slow_start::{HyStartPlusPlus, SlowStart};
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, Flavour, FlowState, Init, Kind,
    Left, Marks, Preset, Window, above_zero, defaults, share,
};
use kernel::KernelCubic;
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Time};

mod kernel;

/// CUBIC in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "cubic",
    kind: Kind::Loss,
    summary: "the window follows a cubic function of the time since the last loss",
    reference: "RFC 9438",
    year: 2008,
    marks: Marks::AsSet,
    source: concat!(include_str!("cubic.rs"), include_str!("cubic/kernel.rs")),
    presets: &[
        Preset {
            name: "2008",
            summary: "the published algorithm: four fifths kept, no HyStart",
            source: "Ha, Rhee, Xu: CUBIC: a new TCP-friendly high-speed TCP variant, 2008: beta = 0.2, C = 0.4",
            params: r#"{ "beta": 0.8, "c": 0.4, "fast_convergence": true, "hystart": false }"#,
        },
        Preset {
            name: "freebsd-9.2",
            summary: "FreeBSD 9: 204/256 kept, C = 102/256, no HyStart",
            source: "sys/netinet/cc/cc_cubic.h: CUBIC_BETA 204, CUBIC_C_FACTOR 102, CUBIC_FC_FACTOR 230, of 256",
            params: r#"{ "beta": 0.796875, "c": 0.3984375, "fast_convergence": true, "hystart": false }"#,
        },
        Preset {
            name: "linux-2.6.20",
            summary: "CUBIC 2.0: 819/1024 kept, slow start ends at 100 segments; without its limit of 16 segments each 100 ms",
            source: "tcp_cubic.c of Linux 02b25fcf: beta = 819, bic_scale = 41, initial_ssthresh = 100",
            params: r#"{ "beta": 0.7998046875, "c": 0.4, "hystart": false, "initial_ssthresh": 100 }"#,
        },
        Preset {
            name: "linux-2.6.26",
            summary: "717/1024 kept as today, no HyStart; the paper of that year has 4/5, see cubic/2008",
            source: "tcp_cubic.c as read for the profile linux-2.6.26: beta = 717; HyStart came with 2.6.29",
            params: r#"{ "beta": 0.7, "c": 0.4, "hystart": false }"#,
        },
    ],
    defaults: defaults::<Config>,
    build: |init, params| {
        let config = params.parse()?;
        Ok(match init.flavour {
            Flavour::Rfc => Box::new(Cubic::new(init, config)),
            Flavour::Linux => Box::new(KernelCubic::new(init, &config)),
        })
    },
};

/// Parameters of CUBIC.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `beta_cubic`: share kept after congestion (RFC 9438 §4.6).
    #[serde(deserialize_with = "share")]
    pub beta: f64,
    /// `C`: how steep the curve is, in segments per second cubed (RFC 9438 §5.1).
    #[serde(deserialize_with = "above_zero")]
    pub c: f64,
    /// Whether a flow that shrinks twice in a row makes room for others (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Whether to grow at least as fast as Reno would (RFC 9438 §4.3).
    pub tcp_friendly: bool,
    /// Whether `HyStart++` ends the first slow start (RFC 9438 §4.10); with the Linux flavour,
    /// whether `HyStart` of 2008 ends any slow start.
    pub hystart: bool,
    /// The window in segments at which the first slow start ends, unless `hystart` ends it
    /// (`tcp_cubic.c`); 0: at a loss.
    pub initial_ssthresh: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            tcp_friendly: true,
            hystart: true,
            initial_ssthresh: 0,
        }
    }
}

impl Config {
    /// The initial window.
    fn window(&self, init: &Init) -> Window {
        let mut window = Window::new(init);
        if self.initial_ssthresh > 0 && !self.hystart {
            window.set_threshold(self.initial_ssthresh);
        }
        window
    }
}

/// The CUBIC controller of one flow.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: Config,
    /// `alpha_cubic` while below `cwnd_prior`.
    alpha: f64,
    window: Window,
    slow_start: SlowStart,
    curve: Curve,
    /// The curve before the last decrease.
    before: Curve,
}

/// The cubic curve.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// `W_max`: the plateau; zero until there is one.
    w_max: f64,
    /// The window when `ssthresh` was last set.
    cwnd_prior: f64,
    /// The stage of congestion avoidance, from its first ACK on.
    stage: Option<Stage>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// `K`: seconds from the start of the stage to the plateau.
    k: f64,
    /// `W_est`: the window that Reno would have.
    w_est: f64,
    /// `t`: the duration of the stage, without times in which the window was not the limit.
    elapsed: Duration,
    /// The ACK up to which `elapsed` counts; `None` while the clock is paused.
    counted: Option<Time>,
    /// Whether that ACK left nothing in flight.
    drained: bool,
}

impl Cubic {
    /// CUBIC at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let window = config.window(init);
        Self {
            // RFC 9438 §4.3: with this slope, AIMD(alpha, beta) has Reno's average window.
            alpha: 3.0 * (1.0 - config.beta) / (1.0 + config.beta),
            window,
            slow_start: if config.hystart {
                SlowStart::HyStartPlusPlus(HyStartPlusPlus::unpaced())
            } else {
                SlowStart::Standard
            },
            curve: Curve::default(),
            before: Curve::default(),
            config,
        }
    }

    /// The plateau after a window of `cwnd` was too large.
    fn plateau(&self, cwnd: f64) -> f64 {
        if self.config.fast_convergence && cwnd < self.curve.w_max {
            // §4.7: the window did not reach the old plateau, so other flows need room.
            cwnd * (1.0 + self.config.beta) / 2.0
        } else {
            cwnd
        }
    }

    /// Congestion avoidance (§4.2 to §4.5).
    fn avoid_congestion(&mut self, flow: &FlowState, credit: u64) {
        let cwnd = self.window.cwnd() as f64;
        let (c, curve) = (self.config.c, &mut self.curve);
        let stage = curve.stage.get_or_insert_with(|| {
            // §4.8, §4.10: without a plateau ahead, the current window is one, and K is zero.
            curve.w_max = curve.w_max.max(cwnd);
            Stage::new(libm::cbrt((curve.w_max - cwnd) / c), cwnd)
        });
        stage.tick(flow);
        let w_cubic = |t: f64, k: f64| c * (t - k) * (t - k) * (t - k) + curve.w_max;
        let t = stage.elapsed.as_secs_f64();

        if self.config.tcp_friendly {
            // §4.3: above the old window, the slope is Reno's.
            let alpha = if stage.w_est >= curve.cwnd_prior { 1.0 } else { self.alpha };
            stage.w_est += alpha * credit as f64 / cwnd;
            if w_cubic(t, stage.k) < stage.w_est {
                self.window.raise(stage.w_est as u64);
                return;
            }
        }
        // §4.2: the curve's value a round trip ahead, but at most half a window more.
        let target = w_cubic(t + flow.srtt.as_secs_f64(), stage.k).min(1.5 * cwnd);
        if target > cwnd {
            self.window.grow(cwnd / (target - cwnd), credit);
        }
    }
}

impl Stage {
    /// A stage that begins with the window `cwnd` at the next ACK.
    fn new(k: f64, cwnd: f64) -> Self {
        Self { k, w_est: cwnd, elapsed: Duration::ZERO, counted: None, drained: false }
    }

    /// Counts the time since the last ACK, unless the clock was paused.
    ///
    /// After an ACK that left nothing in flight, time beyond a round trip was idle (§4.2, §5.8).
    fn tick(&mut self, flow: &FlowState) {
        if let Some(counted) = self.counted {
            let passed = flow.now.since(counted);
            self.elapsed += if self.drained { passed.min(flow.srtt) } else { passed };
        }
        self.counted = Some(flow.now);
        self.drained = flow.in_flight == 0;
    }

    /// Stops the clock until the next tick.
    fn pause(&mut self) {
        self.counted = None;
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() {
            return;
        }
        let first = self.window.in_first_slow_start();
        let credit = self.slow_start.on_ack(&mut self.window, flow, ack);
        if first && !self.window.in_first_slow_start() {
            // §4.10: nothing was lost, so the curve begins with a plateau here.
            self.curve.cwnd_prior = self.window.cwnd() as f64;
        }
        if self.window.in_slow_start() {
            return;
        }
        if flow.cwnd_limited {
            self.avoid_congestion(flow, credit);
        } else if let Some(stage) = &mut self.curve.stage {
            stage.pause();
        }
    }

    fn on_adopted(&mut self, _flow: &FlowState, left: &Left) {
        self.window.take_over(left);
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if event.again {
            return self.window.shrink(flow, event, self.config.beta);
        }
        let cwnd = self.window.cwnd() as f64;
        self.before = self.curve;
        self.curve = Curve {
            w_max: match event.cause {
                // §4.8: the stage after a timeout begins with the current window.
                Cause::Timeout => 0.0,
                Cause::Loss | Cause::Ecn => self.plateau(cwnd),
            },
            cwnd_prior: cwnd,
            stage: None,
        };
        self.window.shrink(flow, event, self.config.beta);
    }

    fn on_undo(&mut self, _flow: &FlowState) {
        // §4.9.2.
        if self.window.undo() {
            self.curve = self.before;
        }
    }

    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        self.window.restart(flow, idle);
        // A smaller window has another position on the curve: a new stage computes it.
        self.curve.stage = None;
    }

    fn on_moderated(&mut self, cwnd: u64) {
        self.window.cap(cwnd);
    }

    fn on_given_up(&mut self, cwnd: u64) {
        self.window.set(cwnd);
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        let stage = self.curve.stage.unwrap_or(Stage::new(0.0, 0.0));
        // `W_max`: the plateau of the curve, in segments; 0 until there is one.
        record("w_max", self.curve.w_max);
        // Window when `ssthresh` was last set, in segments. Not with the Linux flavour.
        record("cwnd_prior", self.curve.cwnd_prior);
        // `K`: time from the start of the stage to the plateau, in seconds.
        record("k", stage.k);
        // `t`: time since the start of the stage, without idle periods, in seconds. Not with the
        // Linux flavour.
        record("t", stage.elapsed.as_secs_f64());
        // `W_est`: the window that Reno would have, in segments.
        record("w_est", stage.w_est);
        // 1 in conservative slow start of `HyStart++`, else 0. Not with the Linux flavour.
        record("css", f64::from(u8::from(self.slow_start.is_conservative(&self.window))));
    }
}

#[cfg(test)]
mod tests;
