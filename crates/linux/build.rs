//! Builds the guest's program, which the backend contains, and the readers of the kernel's records.
//!
//! The program runs as process 1 of a machine without libraries, so it is linked statically, which
//! Cargo can only do in a separate build.

#[path = "build/records.rs"]
mod records;

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What describes the records.
const RECORDS: &str = "kernel/net/record.h";

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() -> Result<(), Box<dyn Error>> {
    for input in
        ["../guest/src", "../guest/Cargo.toml", "../../Cargo.lock", "build.rs", "build", RECORDS]
    {
        println!("cargo::rerun-if-changed={input}");
    }
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(folder.join("records.rs"), records::generate(&fs::read_to_string(RECORDS)?)?)?;
    let guest = folder.join("guest");
    if env::var("TARGET")? != TARGET {
        // On other targets there is no kernel to run the guest; the backend reports that.
        return Ok(fs::write(guest, [])?);
    }
    let target = folder.join("guest-target");
    let mut cargo = Command::new(env::var("CARGO")?);
    // Settings of the outer build are not meant for this one.
    for (name, _) in env::vars().filter(|(name, _)| is_of_the_outer_build(name)) {
        cargo.env_remove(name);
    }
    let status = cargo
        .args(["build", "--quiet", "--release", "--package", "tcplab-guest", "--bin", "guest"])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static")
        // The program waits for the kernel nearly all of the time, so build time counts more than
        // speed.
        .envs([
            ("CARGO_PROFILE_RELEASE_LTO", "off"),
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
            ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
            ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
            ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
        ])
        .status()?;
    if !status.success() {
        return Err("the guest's program could not be built".into());
    }
    fs::copy(target.join(TARGET).join("release/guest"), guest)?;
    Ok(())
}

fn is_of_the_outer_build(name: &str) -> bool {
    ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WORKSPACE_WRAPPER"]
        .contains(&name)
        || name.starts_with("CARGO_PROFILE_")
        || name.starts_with("CARGO_FEATURE_")
        || name.starts_with("CARGO_CFG_")
}
