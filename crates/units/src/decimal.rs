//! Decimal numbers with a unit, parsed and printed exactly.

use std::fmt;
use thiserror::Error;

/// Why a text is not a quantity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("`{text}` does not begin with a number; write it like `{example}`")]
    NoNumber {
        /// The text.
        text: String,
        /// A valid quantity.
        example: &'static str,
    },
    /// The number is below zero.
    #[error("`{text}` is negative; write it like `{example}`")]
    Negative {
        /// The text.
        text: String,
        /// A valid quantity.
        example: &'static str,
    },
    /// No unit follows the number.
    #[error("`{text}` has no unit; the units are {}", .units.join(", "))]
    NoUnit {
        /// The text.
        text: String,
        /// The valid units.
        units: Vec<&'static str>,
    },
    /// The unit is not one of this quantity's.
    #[error("`{unit}` is not a unit of {quantity}; the units are {}", .units.join(", "))]
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// The quantity: "time", "rate", "size".
        quantity: &'static str,
        /// The valid units.
        units: Vec<&'static str>,
    },
    /// The value is not a whole number of the smallest steps.
    #[error("`{text}` is finer than {step}{}", nearby(.nearest.as_ref()))]
    TooFine {
        /// The text.
        text: String,
        /// The smallest step.
        step: &'static str,
        /// The nearest valid value, if there is one.
        nearest: Option<String>,
    },
    /// The value exceeds the maximum.
    #[error("`{text}` is more than {limit}, the most there is")]
    TooLarge {
        /// The text.
        text: String,
        /// The maximum.
        limit: &'static str,
    },
}

fn nearby(nearest: Option<&String>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; write `{nearest}`"))
}

/// The number of significant decimals.
const DIGITS: usize = 18;

/// The limit of exponents, beyond those of any quantity: the most zeros that are written out.
const MOST_EXPONENT: i64 = 1_000;

/// Splits a quantity into its number, `"1.5e9"`, and its unit. Both may be empty.
pub fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let is_decimal = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_');
    let mut end = text.find(|c| !is_decimal(c)).unwrap_or(text.len());
    // An `e` followed by digits belongs to the number: no unit begins like that.
    if let Some(power) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(power.starts_with(['+', '-']));
        let length = digits(&power[sign..]);
        if end > 0 && length > 0 {
            end += 1 + sign + length;
        }
    }
    (&text[..end], text[end..].trim_start())
}

/// The digits of a number before and behind its decimal point, with the exponent applied.
fn plain(number: &str) -> Option<(String, String)> {
    let number = number.replace('_', "");
    let (decimal, power) = number.split_once(['e', 'E']).unwrap_or((&number, "0"));
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    // Only a number with very many digits does not fit, and then only its sign matters.
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

/// A unit: its name and how many steps it is.
pub(crate) type Unit = (&'static str, u64);

/// The notation of a quantity.
pub(crate) struct Notation {
    pub quantity: &'static str,
    pub example: &'static str,
    pub limit: &'static str,
    /// The smallest step, in words.
    pub step: &'static str,
    /// Ascending from the smallest, which is one step; the largest unit that fits is used for
    /// printing.
    pub units: &'static [Unit],
    /// Other spellings, which are parsed but never printed.
    pub also: &'static [Unit],
}

impl Notation {
    /// Parses `text` as a number of steps.
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
        // Digits beyond the limit are finer than any step.
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

    /// Prints `steps` in the largest unit that keeps a digit before the point.
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

    /// The unit in which zero is printed: the most familiar one.
    fn zero(&self) -> usize {
        let unit = self.example.split(' ').next_back();
        self.units.iter().position(|(name, _)| Some(*name) == unit).unwrap_or(0)
    }
}

/// A number of steps with its notation.
struct Written<'a>(&'a Notation, u64);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format(self.1, f)
    }
}

/// Gives a quantity its text form: `FromStr`, `Display`, `Serialize` and `Deserialize` by one
/// notation.
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
