//! Seccomp filters for system calls that builds do not need and that have been used to escape from sandboxes. The calls
//! fail as not permitted or not implemented, so that programs carry on.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that fail with EPERM.
const REFUSED: [c_long; 42] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: [c_long; 3] = [libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [c_long; 0] = [];

/// Calls that fail with ENOSYS, for which programs have a fallback. `clone3` is among them because a filter cannot
/// examine its flags. `vmsplice` is because pipes would keep memory that no process maps any more (huge pages as a
/// whole), which cannot be counted.
const ABSENT: [c_long; 5] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_vmsplice,
];

/// Flag and own numbers of the x32 calls, another interface of the same processor.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
#[cfg(target_arch = "x86_64")]
const X32_OWN: [i64; 6] = [514, 520, 521, 528, 539, 540];

/// Flags of `clone` that create namespaces.
const NAMESPACE_FLAGS: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests of `ioctl` that inject input into a terminal: TIOCSTI, TIOCLINUX.
const TERMINAL_INJECTION_REQUESTS: [u64; 2] = [0x5412, 0x541c];

const PTRACE_ATTACH: u64 = 16;
const PTRACE_SEIZE: u64 = 0x4206;

fn argument_is(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

fn rule_of(conditions: Vec<SeccompCondition>) -> Result<SeccompRule> {
    Ok(SeccompRule::new(conditions)?)
}

fn refused_rules() -> Result<Rules> {
    use SeccompCmpOp::{Eq, MaskedEq};
    let mut rules: Rules = REFUSED.iter().chain(&REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    for call in rules.keys().copied().collect::<Vec<_>>().into_iter().chain(X32_OWN) {
        rules.insert(call | X32, Vec::new());
    }
    let spaces = NAMESPACE_FLAGS.map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        rule_of(vec![argument_is(0, MaskedEq(flag), flag)?])
    });
    let spaces = spaces.into_iter().collect::<Result<Vec<_>>>()?;
    let typed = TERMINAL_INJECTION_REQUESTS
        .map(|request| rule_of(vec![argument_is(1, Eq, request)?]))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    // A command may trace its own processes, but not process 1, which confines it.
    let first = [PTRACE_ATTACH, PTRACE_SEIZE]
        .map(|request| rule_of(vec![argument_is(0, Eq, request)?, argument_is(1, Eq, 1)?]));
    let first = first.into_iter().collect::<Result<Vec<_>>>()?;
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_clone | X32, spaces.clone());
    rules.extend([(libc::SYS_clone, spaces), (libc::SYS_ioctl, typed), (libc::SYS_ptrace, first)]);
    Ok(rules)
}

fn absent_rules() -> Rules {
    let rules = ABSENT.iter().map(|call| (*call, Vec::new()));
    #[cfg(target_arch = "x86_64")]
    let rules = rules.chain(ABSENT.iter().map(|call| (*call | X32, Vec::new())));
    rules.collect()
}

/// Allows only sockets of the families UNIX, INET, INET6 and NETLINK_ROUTE.
fn socket_family_rules() -> Result<Rules> {
    use SeccompCmpOp::{Eq, Ne};
    let number = |family: libc::c_int| u64::from(family.cast_unsigned());
    let kept = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let strange = rule_of(kept.iter().map(|family| argument_is(0, Ne, number(*family))).collect::<Result<_>>()?)?;
    let kernel =
        rule_of(vec![argument_is(0, Eq, number(libc::AF_NETLINK))?, argument_is(2, Ne, number(libc::NETLINK_ROUTE))?])?;
    let rules = vec![strange, kernel];
    let calls = [libc::SYS_socket, libc::SYS_socketpair].map(|call| (call, rules.clone()));
    #[cfg(target_arch = "x86_64")]
    let calls = calls.into_iter().chain([(libc::SYS_socket | X32, rules)]);
    Ok(calls.into_iter().collect())
}

fn compile_filter(rules: Rules, errno: libc::c_int, arch: TargetArch) -> Result<BpfProgram> {
    let action = SeccompAction::Errno(errno.cast_unsigned());
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()?)
}

/// Installs the filters for this thread and all processes it starts. Returns false if the kernel or the architecture
/// does not support them.
///
/// # Errors
/// The kernel supports seccomp but refuses a filter.
pub(super) fn install_filters() -> Result<bool> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else { return Ok(false) };
    if !std::path::Path::new("/proc/sys/kernel/seccomp").exists() {
        return Ok(false);
    }
    for (rules, errno) in
        [(socket_family_rules()?, libc::EAFNOSUPPORT), (absent_rules(), libc::ENOSYS), (refused_rules()?, libc::EPERM)]
    {
        apply_filter(&compile_filter(rules, errno, arch)?)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile() {
        let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        for rules in [socket_family_rules().unwrap(), absent_rules(), refused_rules().unwrap()] {
            assert!(!compile_filter(rules, libc::EPERM, arch).unwrap().is_empty());
        }
    }
}
