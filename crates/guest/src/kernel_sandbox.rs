//! The confinement of a kernel as a process of the machine: Landlock and seccomp, where available.
//! The confinement holds even if a program takes over the guest's kernel.

use crate::capabilities;
use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
    path_beneath_rules,
};
use nix::libc;
use rustix::thread::{CapabilitySet, secure_computing_mode};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::Path;

/// The newest Landlock version requested; older machines apply the rules that they know.
const NEWEST: ABI = ABI::V9;

/// The libraries that the dynamic linker needs for the kernel's process, which is linked only to
/// the C library.
const LIBRARIES: [&str; 6] =
    ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/nix/store", "/etc/ld.so.cache"];

/// The files that a kernel may access.
pub(crate) struct Needs<'a> {
    /// The kernel's program.
    pub kernel: &'a Path,
    /// The folders to which it writes: the run's, and that of its memory.
    pub writes: [&'a Path; 2],
    /// The files that programs in the kernel may read.
    pub reads: &'a [OsString],
}

/// Confines the calling process and all that it executes. Missing confinements are no error: the
/// host side has checked for them, and warns.
pub(crate) fn confine(needs: &Needs<'_>) -> Result<(), Box<dyn Error>> {
    // This capability serves runs by root in folders of other users; Landlock applies to it too.
    let kept = CapabilitySet::DAC_READ_SEARCH;
    capabilities::bound(kept)?;
    capabilities::keep(kept)?;
    restrict_files(needs)?;
    if secure_computing_mode().is_ok() {
        apply_filter(&filter(refused()?, libc::EPERM)?)?;
        // The C library then uses `clone`, whose flags can be inspected.
        apply_filter(&filter(BTreeMap::from([(libc::SYS_clone3, vec![])]), libc::ENOSYS)?)?;
    }
    Ok(())
}

/// Restricts files, TCP, signals and abstract sockets: everything that Landlock covers is denied,
/// except for these files.
fn restrict_files(needs: &Needs<'_>) -> Result<(), Box<dyn Error>> {
    let read = AccessFs::from_read(NEWEST);
    // No links, FIFOs or devices: a run only creates files, folders and the kernel's own socket.
    let write = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSock
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir;
    let both = AccessFs::ReadFile | AccessFs::WriteFile;
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules([needs.kernel], AccessFs::Execute | AccessFs::ReadFile))?
        .add_rules(path_beneath_rules(LIBRARIES, read))?
        .add_rules(path_beneath_rules(needs.reads, read))?
        .add_rules(path_beneath_rules(needs.writes, write))?
        .add_rules(path_beneath_rules(["/proc/cpuinfo"], AccessFs::ReadFile))?
        .add_rules(path_beneath_rules(["/dev/null"], both))?
        .restrict_self()?;
    Ok(())
}

/// System calls that tcplab's kernels never make and that reach beyond files: the network, the
/// machine's own kernel, other processes, owners and modes of files. User-Mode Linux's use of
/// `ptrace`, memory and signals differs between versions, so this is a list of denied calls.
const REFUSED: &[i64] = &[
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_sendto,
    libc::SYS_sendmmsg,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_chown,
    libc::SYS_fchown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_syslog,
    libc::SYS_fanotify_init,
];

/// Namespaces into which a process may be cloned.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The denied system calls, with their arguments.
fn refused() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let with = |argument, compared, value: u64| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compared, value)?;
        SeccompRule::new(vec![condition])
    };
    let mut rules: BTreeMap<_, _> = REFUSED.iter().map(|&call| (call, vec![])).collect();
    // Sockets other than Unix ones, of which the kernel creates one that nobody connects to.
    rules.insert(libc::SYS_socket, vec![with(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?]);
    // Older kernels set their memory file to this mode.
    rules.insert(libc::SYS_fchmod, vec![with(1, SeccompCmpOp::Ne, 0o777)?]);
    let cloned = NAMESPACES.map(|flag| {
        let flag = flag as u64;
        with(0, SeccompCmpOp::MaskedEq(flag), flag)
    });
    rules.insert(libc::SYS_clone, cloned.into_iter().collect::<Result<_, _>>()?);
    Ok(rules)
}

/// Denies these system calls with this error, and allows all others.
fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: i32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let refuse = SeccompAction::Errno(error as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, TargetArch::x86_64)?.try_into()
}
