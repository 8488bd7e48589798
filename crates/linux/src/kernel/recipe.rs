//! tcplab's additions to a kernel's source, and a fingerprint that detects changes of them.

use super::error::{At, Error};
use super::options;
use super::request::Control;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Files added to the tree. `net/tcplab` has tcplab's part of the kernel: the links, the observer,
/// the random numbers.
const FILES: [(&str, &str); 6] = [
    ("net/tcplab/Makefile", include_str!("../../kernel/net/Makefile")),
    ("net/tcplab/lane.c", include_str!("../../kernel/net/lane.c")),
    ("net/tcplab/observer.c", include_str!("../../kernel/net/observer.c")),
    ("net/tcplab/random.c", include_str!("../../kernel/net/random.c")),
    ("net/tcplab/record.h", include_str!("../../kernel/net/record.h")),
    ("arch/x86/um/os-Linux/tcplab_xstate.h", include_str!("../../kernel/um/xstate.h")),
];

/// A text replacement in a file of the kernel.
struct Edit {
    file: &'static str,
    before: &'static str,
    after: &'static str,
    /// The consequence of leaving the edit out; `None` if a source without the text needs no edit.
    without: Option<&'static str>,
}

const CHANCE: Option<&str> =
    Some("runs would not repeat, as the machine's own chance would decide");
const RTTS: Option<&str> = Some("RTTs would not be seen");
const COARSE: Option<&str> = Some("times would be wrong by up to half a microsecond");

const EDITS: [Edit; 37] = [
    Edit {
        file: "arch/um/include/asm/archrandom.h",
        before: "os_getrandom",
        after: "tcplab_getrandom",
        without: CHANCE,
    },
    // The first seed, at boot.
    Edit {
        file: "arch/um/kernel/um_arch.c",
        before: "os_getrandom",
        after: "tcplab_getrandom",
        without: CHANCE,
    },
    Edit {
        file: "arch/um/kernel/um_arch.c",
        before: "#include <linux/random.h>\n",
        after: "#include <linux/random.h>\n#include <asm/archrandom.h>\n",
        without: CHANCE,
    },
    // Older versions refuse to set a subset of the registers, as hosts with many registers (AMX)
    // require. Later versions handle that differently.
    Edit {
        file: "arch/x86/um/os-Linux/registers.c",
        before: "#include <registers.h>\n",
        after: "#include <registers.h>\n#include \"tcplab_xstate.h\"\n",
        without: None,
    },
    Edit {
        file: "arch/x86/um/os-Linux/registers.c",
        before: "ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov)",
        after: "tcplab_set_xstate(pid, &iov)",
        without: None,
    },
    // The clock and its alarms have a resolution of one nanosecond, not 256.
    Edit {
        file: "arch/um/include/linux/time-internal.h",
        before: "#define TIMER_MULTIPLIER 256",
        after: "#define TIMER_MULTIPLIER 1\nextern unsigned long tcplab_clock_step;",
        without: COARSE,
    },
    Edit {
        file: "arch/um/include/linux/time-internal.h",
        before: "#define TIMER_MIN_DELTA  500",
        after: "#define TIMER_MIN_DELTA  1",
        without: COARSE,
    },
    // Alarms expire when due and not a nanosecond later. That delay would add up, over every lane
    // that a packet passes and all round trips of an ack-clocked flow.
    Edit {
        file: "arch/um/kernel/time.c",
        before: "\tdelta += 1;\n",
        after: "\tdelta = max(delta, 1UL);\n",
        without: COARSE,
    },
    // How far a process's read of the clock advances it: not at all, unless there are programs that
    // poll the clock.
    Edit {
        file: "arch/um/kernel/time.c",
        before: "time_travel_update_time_rel(TIMER_MULTIPLIER)",
        after: "if (tcplab_clock_step)\n\t\t\t\ttime_travel_update_time_rel(tcplab_clock_step)",
        without: Some("programs that wait by looking at the clock would wait for ever"),
    },
    // The tracepoint of arriving segments, also for connections whose application has closed.
    Edit {
        file: "net/ipv4/tcp_input.c",
        before: "\ttcp_mstamp_refresh(tp);\n\ttp->rx_opt.saw_tstamp = 0;\n",
        after: "\ttrace_tcp_probe(sk, skb);\n\ttcp_mstamp_refresh(tp);\n\ttp->rx_opt.saw_tstamp = 0;\n",
        without: Some("what arrives after the application has closed would not be seen"),
    },
    // Random numbers of congestion controls, the same as those that `sim` draws for the flow, where
    // this source has the calls of 6.12.
    Edit {
        file: "net/ipv4/tcp_bbr.c",
        before: "#include <linux/random.h>\n",
        after: "#include <linux/random.h>\n#include \"../tcplab/record.h\"\n",
        without: None,
    },
    Edit {
        file: "net/ipv4/tcp_bbr.c",
        before: "get_random_u32_below(bbr_cycle_rand)",
        after: "tcplab_below(sk, bbr_cycle_rand)",
        without: None,
    },
    Edit {
        file: "net/ipv4/tcp_cdg.c",
        before: "#include <linux/random.h>\n",
        after: "#include <linux/random.h>\n#include \"../tcplab/record.h\"\n",
        without: None,
    },
    Edit {
        file: "net/ipv4/tcp_cdg.c",
        before: "get_random_u32()",
        after: "tcplab_word(sk)",
        without: None,
    },
    Edit {
        file: "net/ipv4/tcp_nv.c",
        before: "#include <linux/math64.h>\n",
        after: "#include <linux/math64.h>\n#include \"../tcplab/record.h\"\n",
        without: None,
    },
    Edit {
        file: "net/ipv4/tcp_nv.c",
        before: "get_random_bytes(&rand, 1)",
        after: "rand = tcplab_byte(sk)",
        without: None,
    },
    Edit {
        file: "net/ipv4/tcp_input.c",
        before: "tcp_rsk(req)->ts_off = st.ts_off;",
        after: "tcp_rsk(req)->ts_off = tcplab_ts_off(ntohs(tcp_hdr(skb)->source));",
        without: None,
    },
    // Random numbers and hashes of queue disciplines, the same as those of `sim` on the same lane.
    // PIE and adaptive RED count time from the beginning of the experiment.
    Edit {
        file: "include/net/pkt_sched.h",
        before: "#include <net/sch_generic.h>\n",
        after: "#include <net/sch_generic.h>\n#include \"../../net/tcplab/record.h\"\n",
        without: None,
    },
    Edit {
        file: "include/net/red.h",
        before: "get_random_u32()",
        after: "tcplab_queue_word()",
        without: None,
    },
    Edit {
        file: "net/sched/sch_pie.c",
        before: "get_random_bytes(&rnd, 8)",
        after: "rnd = tcplab_queue_bits()",
        without: None,
    },
    Edit {
        file: "net/sched/sch_red.c",
        before: "mod_timer(&q->adapt_timer, jiffies + HZ/2)",
        after: "mod_timer(&q->adapt_timer, tcplab_next_turn(HZ/2))",
        without: None,
    },
    Edit {
        file: "net/sched/sch_red.c",
        before: "\tred_adaptative_algo(&q->parms, &q->vars);",
        after: "\tif (tcplab_start < ktime_get_ns())\n\t\tred_adaptative_algo(&q->parms, &q->vars);",
        without: None,
    },
    Edit {
        file: "net/sched/sch_pie.c",
        before: "mod_timer(&q->adapt_timer, jiffies + q->params.tupdate)",
        after: "mod_timer(&q->adapt_timer, tcplab_next_turn(q->params.tupdate))",
        without: None,
    },
    Edit {
        file: "net/sched/sch_fq_pie.c",
        before: "mod_timer(&q->adapt_timer, jiffies + next)",
        after: "mod_timer(&q->adapt_timer, next ? tcplab_next_turn(next) : jiffies)",
        without: None,
    },
    Edit {
        file: "net/sched/sch_fq_pie.c",
        before: "skb_get_hash(skb)",
        after: "tcplab_flow_hash(skb)",
        without: None,
    },
    Edit {
        file: "net/sched/sch_fq_codel.c",
        before: "skb_get_hash(skb)",
        after: "tcplab_flow_hash(skb)",
        without: None,
    },
    Edit {
        file: "net/sched/sch_fq.c",
        before: "skb_get_hash(skb)",
        after: "tcplab_flow_hash(skb)",
        without: None,
    },
    Edit {
        file: "net/sched/sch_sfq.c",
        before: "skb_get_hash_perturb(skb, &q->perturbation)",
        after: "tcplab_flow_hash(skb)",
        without: None,
    },
    Edit {
        file: "net/sched/sch_cake.c",
        before: "bool use_skbhash = skb->l4_hash",
        after: "bool use_skbhash = false",
        without: None,
    },
    Edit {
        file: "net/sched/sch_cake.c",
        before: "flow_hash = flow_hash_from_keys(&keys)",
        after: "flow_hash = tcplab_flow_hash(skb)",
        without: None,
    },
    Edit {
        file: "net/sched/sch_cake.c",
        before: "srchost_hash = flow_hash_from_keys(&host_keys)",
        after: "srchost_hash = tcplab_source_hash(skb)",
        without: None,
    },
    Edit {
        file: "net/sched/sch_cake.c",
        before: "dsthost_hash = flow_hash_from_keys(&host_keys)",
        after: "dsthost_hash = tcplab_target_hash(skb)",
        without: None,
    },
    // An ACK removed by the filter counts as dropped and is reported.
    Edit {
        file: "net/sched/sch_cake.c",
        before: "consume_skb(ack)",
        after: "kfree_skb(ack)",
        without: None,
    },
    Edit {
        file: "net/sched/sch_cake.c",
        before: "get_random_u32() < vars->p_drop",
        after: "tcplab_queue_word() < vars->p_drop",
        without: None,
    },
    Edit {
        file: "net/sched/sch_cake.c",
        before: "get_random_u16()) >> 16",
        after: "(u16)tcplab_queue_word()) >> 16",
        without: None,
    },
    // RTT samples, which the kernel only keeps with SACK. Taken before those of timestamps, whose
    // clock has a resolution of a millisecond.
    Edit {
        file: "net/ipv4/tcp_input.c",
        before: "#include <trace/events/tcp.h>\n",
        after: "#include <trace/events/tcp.h>\n#include \"../tcplab/record.h\"\n",
        without: RTTS,
    },
    Edit {
        file: "net/ipv4/tcp_input.c",
        before: "\tif (seq_rtt_us < 0)\n\t\tseq_rtt_us = sack_rtt_us;\n",
        after: "\ttcplab_note_rtt(sk, flag & FLAG_SYN_ACKED ? -1L : ca_rtt_us);\n\tif (seq_rtt_us < 0)\n\t\tseq_rtt_us = sack_rtt_us;\n",
        without: RTTS,
    },
];

/// The file that defines `HZ` and other options of `ARCH=um`.
pub(super) const KCONFIG: &str = "arch/um/Kconfig";

/// The hash of everything that tcplab adds to a kernel.
pub(super) fn fingerprint() -> String {
    let files = FILES.iter().flat_map(|(name, text)| [*name, *text]);
    let edits = EDITS.iter().flat_map(|edit| [edit.file, edit.before, edit.after]);
    fingerprint_of(files.chain(edits).chain([options::FRAGMENT]).map(str::as_bytes))
}

/// 16 hexadecimal digits of a hash over these parts, in this order.
pub(super) fn fingerprint_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    digits(hash)
}

/// The first 16 hexadecimal digits of a hash.
pub(super) fn digits(hash: Sha256) -> String {
    let mut text = String::new();
    for byte in &hash.finalize()[..8] {
        write!(text, "{byte:02x}").expect("text takes everything");
    }
    text
}

/// Changes a source: adds tcplab's part and random numbers, the timer frequency and the user's
/// congestion controls. Changes already made are left as they are. `named` is the name known to the
/// user.
pub(super) fn apply(tree: &Path, named: &str, hz: u32, controls: &[Control]) -> Result<(), Error> {
    for edit in &EDITS {
        edit.apply(tree).map_err(|problem| Error::refused(named, problem))?;
    }
    let part = tree.join("net/tcplab");
    fs::create_dir_all(&part).at(&part)?;
    for (file, text) in FILES {
        write(&tree.join(file), text)?;
    }
    append(&tree.join("net/Makefile"), "\nobj-y += tcplab/\n")?;
    let kconfig = tree.join(KCONFIG);
    write(&kconfig, options::with_hz(&read(&kconfig)?, hz))?;
    for control in controls {
        write(&tree.join("net/ipv4").join(&control.file), &control.text)?;
        let line = format!("\nobj-y += {}.o\n", control.stem());
        append(&tree.join("net/ipv4/Makefile"), &line)?;
    }
    Ok(())
}

impl Edit {
    /// Makes the edit, or returns why it cannot be made.
    fn apply(&self, tree: &Path) -> Result<(), String> {
        let Self { file, before, after, without } = self;
        let path = tree.join(file);
        let text = if path.exists() {
            read(&path).map_err(|error| error.to_string())?
        } else {
            String::new()
        };
        if text.contains(after) {
            return Ok(());
        }
        if text.contains(before) {
            return write(&path, text.replace(before, after)).map_err(|error| error.to_string());
        }
        let refusal = |without| {
            let before = before.trim().replace(['\n', '\t'], " ");
            format!("{file} has no `{before}`, which tcplab replaces; without that, {without}")
        };
        without.map_or(Ok(()), |without| Err(refusal(without)))
    }
}

/// Appends text to a file, once.
fn append(file: &Path, text: &str) -> Result<(), Error> {
    let before = read(file)?;
    if before.ends_with(text) { Ok(()) } else { write(file, before + text) }
}

pub(super) fn read(file: &Path) -> Result<String, Error> {
    let bytes = fs::read(file).at(file)?;
    // Old sources have comments with names in other encodings.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Error> {
    fs::write(file, text).at(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_ours_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel");
        let texts = FILES.map(|(_, text)| text);
        for part in ["net", "um"] {
            for file in fs::read_dir(folder.join(part)).unwrap() {
                let file = file.unwrap().path();
                assert!(texts.contains(&&*read(&file).unwrap()), "{}", file.display());
            }
        }
    }

    /// A tree with all texts to be replaced.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for file in EDITS.iter().map(|edit| edit.file).chain([KCONFIG, "net/Makefile"]) {
            let path = tree.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let texts = EDITS.iter().filter(|edit| edit.file == file).map(|edit| edit.before);
            fs::write(path, texts.collect::<Vec<_>>().concat()).unwrap();
        }
        tree
    }

    /// The content of all edited files.
    fn content(tree: &Path) -> Vec<String> {
        let files = EDITS.iter().map(|edit| edit.file).chain(["net/Makefile"]);
        files.map(|file| read(&tree.join(file)).unwrap()).collect()
    }

    #[test]
    fn edits_are_idempotent() {
        let tree = tree();
        apply(tree.path(), "it", 1000, &[]).unwrap();
        let first = content(tree.path());
        for (edit, text) in EDITS.iter().zip(&first) {
            assert!(text.contains(edit.after), "{}: {text}", edit.file);
        }
        apply(tree.path(), "it", 1000, &[]).unwrap();
        assert_eq!(content(tree.path()), first);
    }

    #[test]
    fn a_source_in_which_a_needed_edit_cannot_be_made_is_refused() {
        for edit in &EDITS {
            let tree = tree();
            let path = tree.path().join(edit.file);
            let changes: [&dyn Fn(); 2] = [
                &|| fs::write(&path, read(&path).unwrap().replace(edit.before, "")).unwrap(),
                &|| fs::remove_file(&path).unwrap(),
            ];
            for change in changes {
                change();
                let refusal = edit.apply(tree.path()).err();
                let Some(without) = edit.without else {
                    assert_eq!(refusal, None);
                    continue;
                };
                let refusal = refusal.unwrap();
                assert!(refusal.starts_with(&format!("{} has no `", edit.file)), "{refusal}");
                assert!(refusal.ends_with(without), "{refusal}");
            }
            let refused = apply(tree.path(), "it", 1000, &[]);
            assert_eq!(
                refused.is_err(),
                EDITS.iter().any(|other| other.file == edit.file && other.without.is_some())
            );
        }
    }

    #[test]
    fn fingerprints_depend_on_the_boundaries_of_parts() {
        let of = |parts: &[&str]| fingerprint_of(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["a", "b"]).len(), 16);
        assert_ne!(of(&["a", "b"]), of(&["ab", ""]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        assert_eq!(fingerprint(), fingerprint());
    }
}
