//! From `kernel/net/record.h` to the structs with which `src/records.rs` reads its records, so that
//! the header is the one description of them.
//!
//! The header keeps to a part of C: `enum` and `struct` with fields of the types below, arrays of
//! bytes or of words, and no padding, which is checked. An array whose length is a name holds as
//! many bytes as its record has left.

use std::fmt::Write;

/// The types of fields, the same in Rust, and their bytes. Those of the network stay in its order.
const TYPES: [(&str, &str, usize); 5] = [
    ("__u8", "u8", 1),
    ("__u16", "u16", 2),
    ("__u32", "u32", 4),
    ("__u64", "u64", 8),
    ("__be32", "[u8; 4]", 4),
];

/// The module's text.
pub fn generate(header: &str) -> Result<String, String> {
    let header = without_comments(header);
    let mut made = String::new();
    for (start, _) in header.match_indices('{') {
        let head = header[..start].rsplit([';', '}', '\n']).next().unwrap_or("").trim();
        let length = header[start..].find('}').ok_or("a brace is not closed")?;
        let body = &header[start + 1..start + length];
        match head.split_once(" tcplab_") {
            Some(("enum", name)) => made += &constants(name, body)?,
            Some(("struct", name)) => made += &reader(name, body)?,
            _ => return Err(format!("`{head}` is neither an enum nor a struct")),
        }
    }
    Ok(made)
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or("").to_owned();
    first
        + &parts.map(|part| part.split_once("*/").map_or("", |(_, code)| code)).collect::<String>()
}

/// The values of an enum, in a module of its name.
fn constants(name: &str, body: &str) -> Result<String, String> {
    let (mut made, mut next) = (format!("pub(crate) mod {name} {{\n"), 0_u32);
    for value in body.split(',').map(str::trim).filter(|value| !value.is_empty()) {
        let (value, number) = value.split_once('=').unwrap_or((value, ""));
        if !number.is_empty() {
            next = number.trim().parse().map_err(|error| format!("{value}: {error}"))?;
        }
        let value =
            value.trim().strip_prefix("TCPLAB_").ok_or(format!("{value}: what is this?"))?;
        writeln!(made, "    pub const {value}: u32 = {next};")
            .map_err(|error| error.to_string())?;
        next += 1;
    }
    Ok(made + "}\n")
}

/// A struct with a function that reads it.
fn reader(name: &str, body: &str) -> Result<String, String> {
    let (mut fields, mut reads) = (Vec::new(), Vec::new());
    let (mut at, mut widest) = (0, 1);
    let mut is_open = false;
    for line in body.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let (kind, names) = line.split_once(char::is_whitespace).ok_or(format!("`{line}`"))?;
        let (_, rust, bytes) =
            TYPES.iter().find(|it| it.0 == kind).ok_or(format!("{name}: `{kind}` is no type"))?;
        for field in names.split(',').map(str::trim) {
            if is_open || at % bytes != 0 {
                return Err(format!("{name}: `{field}` stands after a gap or an open array"));
            }
            widest = widest.max(*bytes);
            let (field, length) = field.split_once('[').unwrap_or((field, ""));
            let number = length.trim_end_matches(']');
            let (kind, read) = match number.parse::<usize>() {
                _ if number.is_empty() => ((*rust).to_owned(), read(rust, &at.to_string())),
                Ok(number) => {
                    let read = if *rust == "u8" {
                        format!("part(bytes, {at})")
                    } else {
                        let part = read(rust, &format!("{at} + {bytes} * place"));
                        format!("std::array::from_fn(|place| {part})")
                    };
                    let kind = format!("[{rust}; {number}]");
                    at += bytes * (number - 1);
                    (kind, read)
                }
                Err(_) => {
                    is_open = true;
                    ("Vec<u8>".into(), format!("bytes.get({at}..)?.to_vec()"))
                }
            };
            fields.push(format!("    pub {field}: {kind},\n"));
            reads.push(format!("            {field}: {read},\n"));
            at += if is_open { 0 } else { *bytes };
        }
    }
    if !is_open && at % widest != 0 {
        return Err(format!("{name}: the compiler adds bytes to its end"));
    }
    let title: String = name.split('_').map(capitalised).collect();
    let (fields, reads) = (fields.concat(), reads.concat());
    Ok(format!(
        "#[derive(Clone, Debug)]\npub(crate) struct {title} {{\n{fields}}}\n\n\
         impl {title} {{\n    pub const BYTES: usize = {at};\n\n    pub fn read(bytes: &[u8]) -> Option<Self> {{\n        \
         bytes.get(..Self::BYTES)?;\n        Some(Self {{\n{reads}        }})\n    }}\n}}\n"
    ))
}

/// An expression that reads one value.
fn read(rust: &str, at: &str) -> String {
    match rust {
        "u8" => format!("bytes[{at}]"),
        "[u8; 4]" => format!("part(bytes, {at})"),
        _ => format!("{rust}::from_le_bytes(part(bytes, {at}))"),
    }
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}
