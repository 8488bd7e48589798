//! A million mutated experiments: none panics, hangs or takes much memory.
//!
//! Seeded, so that a failure can be repeated by its number. A few thousand in every `cargo test`;
//! more with `TCPLAB_FUZZ=1000000`, which `make fuzz ARGS="--reader --count 1000000"` sets.

use crate::common::{SIM, SMALL};
use crate::fuzz::RICH;
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use tcplab_model::{from_json, from_toml};

/// A mutation may produce the largest valid experiment: a million flows in many runs, whose ids
/// alone take half a minute on a busy machine. Anything slower than this counts as a hang.
const HANG_LIMIT: Duration = Duration::from_secs(180);

/// Words of the schema, and boundary values.
const WORDS: &[&str] = &[
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\n",
    "\\",
    "\\u{0}",
    "\\ud800",
    "*",
    ">",
    "[0]",
    "[4294967295]",
    "[-1]",
    "-",
    "0",
    "1",
    "-0.0",
    "nan",
    "inf",
    "1e308",
    "1e-320",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "99999",
    "1000000",
    "0x7fffffffffffffff",
    "1979-05-27T07:32:00Z",
    "true",
    "null",
    "\"0 s\"",
    "\"1 ps\"",
    "\"213 days\"",
    "\"5124095 h\"",
    "\"18446744073709551615 bit/s\"",
    "\"1 bit/s\"",
    "\"999999999999 BDP\"",
    "\"1e-9 BDP\"",
    "\"off\"",
    "\"left*\"",
    "\"**\"",
    "\"a>b\"",
    "100 %",
    "µs",
    "\u{202e}",
    "\u{0}",
    "\u{feff}",
    "\u{1F980}",
    "count = ",
    "repeat = ",
    "pairs = ",
    "hops = ",
    "seed = ",
    "kind = ",
    "cc = ",
    "[sweep]\n",
    "[let]\n",
    "[[zip]]\n",
    "[variants.a]\n",
    "\"$a\"",
    "a = ",
    "[[flows]]\n",
    "[network.dumbbell]\n",
    "[stack]\n",
    "[record]\n",
    "name = ",
    "rate_changes = ",
    "periods = ",
    "packets = ",
    "captures = ",
    "size = ",
    "command = ",
];

/// A small generator (splitmix64), which is good enough for these tests.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

/// A range of a text, between character boundaries.
fn part(text: &str, random: &mut Random) -> std::ops::Range<usize> {
    let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let first = random.below(borders.len());
    let longest = if random.below(8) == 0 { borders.len() } else { 12 };
    let last = (first + random.below(longest)).min(borders.len() - 1);
    borders[first]..borders[last]
}

/// A line, with its line ending.
fn line(text: &str, random: &mut Random) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.is_empty() { String::new() } else { random.of(&lines).into() }
}

/// One change: a part removed, inserted, doubled, moved, or taken from another experiment.
fn mutate(text: &mut String, seeds: &[String], random: &mut Random) {
    let place = part(text, random);
    match random.below(8) {
        0 => text.replace_range(place, ""),
        1 => text.replace_range(place, random.of(WORDS)),
        2 => text.insert_str(place.start, random.of(WORDS)),
        3 => {
            let copy = text[place.clone()].repeat(1 + random.below(40));
            text.insert_str(place.end, &copy);
        }
        4 => {
            let at = part(text, random).start;
            let moved = text[place].to_owned();
            text.insert_str(at, &moved);
        }
        5 => {
            let from = random.below(seeds.len());
            let other = line(&seeds[from], random);
            let start = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
            text.insert_str(start, &other);
        }
        6 => {
            let digit = char::from(b'0' + random.below(10) as u8).to_string();
            if let Some(at) = text[place.start..].find(|c: char| c.is_ascii_digit()) {
                let at = place.start + at;
                text.replace_range(at..=at, &digit.repeat(1 + random.below(3) * random.below(8)));
            }
        }
        _ => {
            let odd = char::from_u32(random.below(0x11_0000) as u32).unwrap_or('\u{fffd}');
            text.replace_range(place, odd.encode_utf8(&mut [0; 4]));
        }
    }
}

/// Runs everything that processes a user's text.
fn read(text: &str) -> bool {
    [from_toml(text), from_json(text)].into_iter().any(|document| {
        match document.map(|document| document.plans(&SIM)) {
            Ok(Ok(plans)) => {
                assert!(!plans.is_empty());
                true
            }
            Ok(Err(mistakes)) | Err(mistakes) => {
                assert!(!mistakes.to_string().is_empty());
                false
            }
        }
    })
}

/// The examples, the tests' own experiments, and each as JSON.
fn seeds() -> Vec<String> {
    let mut texts = vec![RICH.to_owned(), SMALL.to_owned()];
    for folder in ["../../examples", "../../examples/linux"] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "toml") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts.sort();
    let trees = texts.iter().map(|text| from_toml(text).unwrap().to_json()).collect::<Vec<_>>();
    texts.extend(trees);
    texts
}

/// The mutated experiment with this number and seed.
fn mutant(seed: u64, number: u64, seeds: &[String]) -> String {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ number.rotate_left(32));
    random.next();
    let mut text = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        mutate(&mut text, seeds, &mut random);
    }
    text
}

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[expect(clippy::disallowed_methods, reason = "only the elapsed time is measured, no result")]
#[test]
fn mutated_experiments_are_read_or_refused() {
    let count = setting("TCPLAB_FUZZ", 4000);
    let seed = setting("TCPLAB_FUZZ_SEED", 1);
    let seeds = seeds();
    let (mut right, mut slowest) = (0, (Duration::ZERO, 0));
    for number in 0..count {
        let text = mutant(seed, number, &seeds);
        let began = Instant::now();
        // A panic is caught to report its experiment.
        match thread::scope(|scope| scope.spawn(|| read(&text)).join()) {
            Ok(is_right) => right += u64::from(is_right),
            Err(panic) => {
                eprintln!("seed {seed}, number {number}:\n{text}");
                std::panic::resume_unwind(panic);
            }
        }
        let took = began.elapsed();
        slowest = slowest.max((took, number));
        assert!(took < HANG_LIMIT, "seed {seed}, number {number} took {took:?}:\n{text}");
    }
    let (time, number) = slowest;
    println!("{count} mutated experiments: {right} run, the others are refused");
    println!("the slowest, number {number}, took {time:?}");
    // Most mutations are rejected. If nearly all were, little of the reader would be tested.
    assert!(right * 30 > count, "{right} of {count}");
}
