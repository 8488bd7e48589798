//! Permanently drops capabilities.

use rustix::io::{self, Errno};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Limits the capabilities of programs executed later to these.
pub(crate) fn bound(kept: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    // An ordinary user has no capabilities, and may not change the bounding set.
    if !capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        return Ok(());
    }
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if kept.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            // Beyond the last capability of this kernel.
            Err(Errno::INVAL) => break,
            result => result?,
        }
    }
    Ok(())
}

/// Drops all other capabilities at once.
pub(crate) fn keep(kept: CapabilitySet) -> io::Result<()> {
    let CapabilitySets { effective, permitted, .. } = capabilities(None)?;
    let (effective, permitted) = (effective & kept, permitted & kept);
    set_capabilities(
        None,
        CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() },
    )
}
