//! What tcplab adds to a kernel's source, and how it is told whether that has changed.

use super::error::{At, Error};
use super::options;
use super::request::Control;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Files added to the tree. In `net/tcplab` is our part of the kernel: the links, the observer, the
/// random numbers.
const FILES: [(&str, &str); 6] = [
    ("net/tcplab/Makefile", include_str!("../../kernel/net/Makefile")),
    ("net/tcplab/lane.c", include_str!("../../kernel/net/lane.c")),
    ("net/tcplab/observer.c", include_str!("../../kernel/net/observer.c")),
    ("net/tcplab/random.c", include_str!("../../kernel/net/random.c")),
    ("net/tcplab/record.h", include_str!("../../kernel/net/record.h")),
    ("arch/x86/um/os-Linux/tcplab_xstate.h", include_str!("../../kernel/um/xstate.h")),
];

/// A text replaced in a file of the kernel.
struct Edit {
    file: &'static str,
    before: &'static str,
    after: &'static str,
    /// What would go wrong without it; nothing where a source that lacks the text needs no edit.
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
    // Up to some version, hosts whose processor has many registers (AMX) refuse to set only some.
    // Later ones keep all of them, by other means.
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
    // The clock has steps of a nanosecond, not of 256, and so do its alarms.
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
    // An alarm goes off when it is due and not a nanosecond later, which would add up: one for each
    // lane that a packet passes, over all round trips of a flow that its ACKs clock.
    Edit {
        file: "arch/um/kernel/time.c",
        before: "\tdelta += 1;\n",
        after: "\tdelta = max(delta, 1UL);\n",
        without: COARSE,
    },
    // What a process's look at the clock moves it on by: nothing, unless there are programs that wait by
    // looking.
    Edit {
        file: "arch/um/kernel/time.c",
        before: "time_travel_update_time_rel(TIMER_MULTIPLIER)",
        after: "if (tcplab_clock_step)\n\t\t\t\ttime_travel_update_time_rel(tcplab_clock_step)",
        without: Some("programs that wait by looking at the clock would wait for ever"),
    },
    // The tracepoint of arriving segments, also for connections whose application has finished.
    Edit {
        file: "net/ipv4/tcp_input.c",
        before: "\ttcp_mstamp_refresh(tp);\n\ttp->rx_opt.saw_tstamp = 0;\n",
        after: "\ttrace_tcp_probe(sk, skb);\n\ttcp_mstamp_refresh(tp);\n\ttp->rx_opt.saw_tstamp = 0;\n",
        without: Some("what arrives after the application has closed would not be seen"),
    },
    // What congestion controls draw is what `sim` draws for the same flow, where this source has them as
    // 6.12 has.
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
    // What queue disciplines draw and hash is what those of `sim` draw and hash on the same lane, and
    // PIE and adaptive RED count their time from the experiment's beginning.
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
    // An ACK that the filter takes out is one that was dropped, and told of.
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
    // RTT samples, which the kernel keeps with SACK alone. Before those of timestamps: their clock has
    // steps of a millisecond.
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

/// The file that defines `HZ`, and much else of `ARCH=um`.
pub(super) const KCONFIG: &str = "arch/um/Kconfig";

/// Stands for everything that tcplab itself puts into a kernel.
pub(super) fn fingerprint() -> String {
    let files = FILES.iter().flat_map(|(name, text)| [*name, *text]);
    let edits = EDITS.iter().flat_map(|edit| [edit.file, edit.before, edit.after]);
    fingerprint_of(files.chain(edits).chain([options::FRAGMENT]).map(str::as_bytes))
}

/// 16 hexadecimal digits that stand for these parts, in this order.
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

/// Changes a source: our part, our random numbers, the timer's frequency, the user's congestion
/// controls. What has been changed so already is left as it is. `named` is what users call it.
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
    /// Makes the edit, or says why it cannot be made.
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

/// Adds text to the end of a file, once.
fn append(file: &Path, text: &str) -> Result<(), Error> {
    let before = read(file)?;
    if before.ends_with(text) { Ok(()) } else { write(file, before + text) }
}

pub(super) fn read(file: &Path) -> Result<String, Error> {
    let bytes = fs::read(file).at(file)?;
    // Old sources have names of people in other encodings, in comments.
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

    /// A tree that has all the texts that are replaced.
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

    /// The content of all files that are edited.
    fn content(tree: &Path) -> Vec<String> {
        let files = EDITS.iter().map(|edit| edit.file).chain(["net/Makefile"]);
        files.map(|file| read(&tree.join(file)).unwrap()).collect()
    }

    #[test]
    fn edits_are_made_once() {
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
    fn fingerprints_tell_parts_apart() {
        let of = |parts: &[&str]| fingerprint_of(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["a", "b"]).len(), 16);
        assert_ne!(of(&["a", "b"]), of(&["ab", ""]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        assert_eq!(fingerprint(), fingerprint());
    }
}
