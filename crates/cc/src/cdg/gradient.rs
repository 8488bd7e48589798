//! The growth of delay, and the probability of no back-off.

/// The minimum and maximum of some RTTs, in microseconds; zero for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub min: i32,
    pub max: i32,
}

/// The gradients of the last rounds, and their sums.
#[derive(Clone, Debug)]
pub(super) struct Gradients {
    last: Vec<Span>,
    sum: Span,
    /// The index of the oldest in `last`.
    tail: usize,
    is_full: bool,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The sum over all rounds, in microseconds: of the minimum RTTs if positive, else of the
    /// maximum ones.
    pub gradient: i32,
    /// Whether the delay fell.
    pub falls: bool,
    /// Whether the queue is full, if known.
    pub queue: Option<bool>,
}

impl Gradients {
    pub fn new(window: usize) -> Self {
        let none = Span::default();
        Self { last: vec![none; window], sum: none, tail: 0, is_full: false }
    }

    /// Adds the RTTs of a round and of the one before (`tcp_cdg_grad`).
    pub fn take(&mut self, now: Span, before: Span) -> Step {
        let new =
            Span { min: now.min.wrapping_sub(before.min), max: now.max.wrapping_sub(before.max) };
        let window = self.last.len();
        if window > 1 {
            let old = std::mem::replace(&mut self.last[self.tail], new);
            self.sum.min = self.sum.min.wrapping_add(new.min).wrapping_sub(old.min);
            self.sum.max = self.sum.max.wrapping_add(new.max).wrapping_sub(old.max);
            self.tail = (self.tail + 1) % window;
        } else {
            self.sum = new;
        }
        let Span { min, max } = self.sum;
        let mut gradient = if min > 0 { min } else { max };
        if !self.is_full {
            // Missing gradients are assumed equal to the mean of those available.
            match self.tail as i32 {
                0 => self.is_full = true,
                tail => gradient = gradient.wrapping_mul(window as i32) / tail,
            }
        }
        Step { gradient, falls: min <= -32 || max <= -32, queue: queue(min, max) }
    }
}

/// The queue is full if the minimum RTT grows and the maximum does not. It is not full if both
/// grow, or the maximum falls. Small changes are ignored.
fn queue(min: i32, max: i32) -> Option<bool> {
    let coarse = |value: i32| (value.saturating_add(32 * value.signum())) / 64;
    let (min, max) = (coarse(min), coarse(max));
    match () {
        () if min > 0 && max <= 0 => Some(true),
        () if (min > 0 && max > 0) || max < 0 => Some(false),
        () => None,
    }
}

/// `exp(-x)` in 2^-32, for `x` in millionths: the probability of no back-off. Computed bit by bit
/// as in the kernel (`nexp_u32`).
pub(super) fn chance_to_stay(millionths: u32) -> u32 {
    let bits = millionths >> 8;
    if bits > 0xffff {
        return 0;
    }
    let mut result = u32::MAX - (millionths & 0xff) * (u32::MAX / 1_000_000);
    for bit in (0..16).filter(|bit| bits >> bit & 1 == 1) {
        result = ((u64::from(result) * u64::from(factor(bit))) >> 16) as u32;
    }
    result
}

/// `exp(-0.000256 * 2^bit)`, in 1/65536, rounded.
fn factor(bit: u32) -> u32 {
    libm::round(libm::exp(-256e-6 * f64::from(1_u32 << bit)) * 65536.0 - 1.0) as u32 + 1
}
