//! Decimal numbers with a unit, read and written exactly.

use std::fmt;
use thiserror::Error;

/// Why a text is not a quantity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnitError {
    /// No number stands at the beginning.
    #[error("`{text}` does not begin with a number; write it like `{example}`")]
    NoNumber {
        /// What was read.
        text: String,
        /// A correct one.
        example: &'static str,
    },
    /// The number is below zero.
    #[error("`{text}` is negative; write it like `{example}`")]
    Negative {
        /// What was read.
        text: String,
        /// A correct one.
        example: &'static str,
    },
    /// No unit follows the number.
    #[error("`{text}` has no unit; the units are {}", .units.join(", "))]
    NoUnit {
        /// What was read.
        text: String,
        /// The units there are.
        units: Vec<&'static str>,
    },
    /// The unit is not one of this quantity's.
    #[error("`{unit}` is not a unit of {quantity}; the units are {}", .units.join(", "))]
    UnknownUnit {
        /// The unit that was read.
        unit: String,
        /// What is measured: "time", "rate", "size".
        quantity: &'static str,
        /// The units there are.
        units: Vec<&'static str>,
    },
    /// The value is no whole number of the smallest steps.
    #[error("`{text}` is finer than {step}{}", nearby(.nearest.as_ref()))]
    TooFine {
        /// What was read.
        text: String,
        /// The smallest step.
        step: &'static str,
        /// The nearest value that can be written, if there is one.
        nearest: Option<String>,
    },
    /// The value is larger than the largest.
    #[error("`{text}` is more than {limit}, the most there is")]
    TooLarge {
        /// What was read.
        text: String,
        /// The largest value.
        limit: &'static str,
    },
}

fn nearby(nearest: Option<&String>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; write `{nearest}`"))
}

/// How many decimals are counted.
const DIGITS: usize = 18;

/// Exponents beyond this are those of no quantity: the most decimals of zeros that are written out.
const MOST_EXPONENT: i64 = 1_000;

/// Takes a quantity apart: the number, `"1.5e9"`, and the unit behind it. Both may be empty.
pub fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let is_decimal = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_');
    let mut end = text.find(|c| !is_decimal(c)).unwrap_or(text.len());
    // An `e` belongs to the number if digits follow: no unit begins so.
    if let Some(power) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(power.starts_with(['+', '-']));
        let length = digits(&power[sign..]);
        if end > 0 && length > 0 {
            end += 1 + sign + length;
        }
    }
    (&text[..end], text[end..].trim_start())
}

/// The digits of a number before and behind its point, with the exponent worked in.
fn plain(number: &str) -> Option<(String, String)> {
    let number = number.replace('_', "");
    let (decimal, power) = number.split_once(['e', 'E']).unwrap_or((&number, "0"));
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    // Only a number with very many digits does not fit, and only its sign matters then.
    let most = if power.starts_with('-') { -MOST_EXPONENT } else { MOST_EXPONENT };
    let power = power.parse().unwrap_or(most).clamp(-MOST_EXPONENT, MOST_EXPONENT);
    let zeros = "0".repeat(power.unsigned_abs() as usize);
    let (digits, point) = if power < 0 {
        (format!("{zeros}{whole}{fraction}"), whole.len())
    } else {
        (format!("{whole}{fraction}{zeros}"), whole.len() + power as usize)
    };
    let (whole, fraction) = digits.split_at(point);
    Some((whole.into(), fraction.into()))
}

/// One way of writing a quantity: the name of the unit and how many steps it is.
pub(crate) type Unit = (&'static str, u64);

/// How one quantity is written.
pub(crate) struct Notation {
    pub quantity: &'static str,
    pub example: &'static str,
    pub limit: &'static str,
    /// The smallest step, in words.
    pub step: &'static str,
    /// From the smallest, which is one step, upwards; the first that fits from above is printed.
    pub units: &'static [Unit],
    /// Other spellings that are read but never printed.
    pub also: &'static [Unit],
}

impl Notation {
    /// Reads `text` as a number of steps.
    pub fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(UnitError::Negative { text: text.into(), example: self.example });
        }
        let (number, unit) = split(trimmed);
        let no_number = || UnitError::NoNumber { text: text.into(), example: self.example };
        let too_large = || UnitError::TooLarge { text: text.into(), limit: self.limit };
        let (whole, fraction) = plain(number).ok_or_else(no_number)?;
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.len() > 20 {
            return Err(too_large());
        }
        // What is beyond the digits that are counted is finer than any step.
        let is_cut = fraction.len() > DIGITS;
        let fraction = &fraction[..fraction.len().min(DIGITS)];
        let scale = 10u128.pow(fraction.len() as u32);
        let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| no_number())?;

        let names = || self.units.iter().chain(self.also).map(|unit| unit.0).collect();
        if unit.is_empty() {
            return Err(UnitError::NoUnit { text: text.into(), units: names() });
        }
        let Some(&(_, steps)) = self.units.iter().chain(self.also).find(|(name, _)| *name == unit)
        else {
            return Err(UnitError::UnknownUnit {
                unit: unit.into(),
                quantity: self.quantity,
                units: names(),
            });
        };
        let total = digits.checked_mul(u128::from(steps)).ok_or_else(too_large)?;
        let nearest =
            u64::try_from((total.saturating_add(scale / 2)) / scale).map_err(|_| too_large())?;
        if is_cut || total % scale != 0 {
            return Err(UnitError::TooFine {
                text: text.into(),
                step: self.step,
                nearest: (nearest > 0).then(|| Written(self, nearest).to_string()),
            });
        }
        Ok(nearest)
    }

    /// Writes `steps` in the largest unit that keeps a digit before the point.
    pub fn format(&self, steps: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = self.units.iter().rev().find(|(_, size)| steps >= *size);
        let (name, size) = *fits.unwrap_or(&self.units[self.zero()]);
        let (whole, rest) = (steps / size, steps % size);
        if rest == 0 {
            return write!(f, "{whole} {name}");
        }
        let width = size.ilog10() as usize;
        let fraction = format!("{rest:0width$}");
        write!(f, "{whole}.{} {name}", fraction.trim_end_matches('0'))
    }

    /// The unit in which zero is printed: the one people think in.
    fn zero(&self) -> usize {
        let unit = self.example.split(' ').next_back();
        self.units.iter().position(|(name, _)| Some(*name) == unit).unwrap_or(0)
    }
}

/// So many steps, as they are written.
struct Written<'a>(&'a Notation, u64);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format(self.1, f)
    }
}

/// Gives a quantity its text form: `FromStr`, `Display`, `Serialize` and `Deserialize` by one notation.
macro_rules! written_as {
    ($type:ident, $notation:expr) => {
        impl std::str::FromStr for $type {
            type Err = $crate::UnitError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $notation.parse(text).map(Self)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $notation.format(self.0, f)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(input)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use written_as;
