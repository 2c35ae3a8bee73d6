//! The memory that the kernel keeps for a command beside that of its processes and files: it is part of the limit.

use std::fs;

use chorus_tests::Fixture;
use chorus_tests::measure;

use super::memory::{LIMIT, MOST, is_ended};
use super::{WAYS, mark, run_command, sandbox_info, start_sandbox};

/// The most that a probe may have at its end, in MiB: the limit, and what passes on a busy machine until the watch has
/// counted often enough.
const AT_MOST: u64 = MOST + 1024;

/// Each writes down how many bytes it has. `step` adds some and returns how many; a place that takes no more is followed by the
/// next. One that nobody ends stops at six times the limit, or if the kernel gives no more.
const BEGINNING: &str = "
import ctypes, errno, mmap, os, sys, time
MOST = int(sys.argv[2]) << 20
out = os.open('got', os.O_CREAT | os.O_WRONLY, 0o600)
def got(count): os.pwrite(out, b'%020d' % count, 0)
def fill(step):
    total = 0
    for at in ['/tmp', '/var/tmp', '/dev/shm', os.environ['HOME']]:
        for number in range(1 << 30):
            try: total += step(at, number)
            except OSError as error:
                if error.errno != errno.ENOSPC: raise
                break
            if number % 16 == 0: got(total)
            if total > 6 * MOST: return
c = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    done = c[name](*args)
    if done < 0: raise OSError(ctypes.get_errno(), name)
    return done
";

/// Tables for one page in 2 MiB of a file that has no blocks.
const PAGE_TABLES: &str = "
file = os.open('sparse', os.O_CREAT | os.O_RDWR, 0o600)
os.ftruncate(file, 7 << 30)
maps = []
def tables(): return next(int(line.split()[1]) << 10 for line in open('/proc/self/status') if line.startswith('VmPTE'))
while tables() < 6 * MOST:
    maps.append(mmap.mmap(file, 7 << 30, prot=mmap.PROT_READ))
    maps[-1].madvise(mmap.MADV_RANDOM)
    for at in range(0, 7 << 30, 2 << 20):
        maps[-1][at]
        if at % (256 << 20) == 0: got(tables())
";

const FILES: &str = "
def step(at, number):
    os.close(os.open(at + '/' + str(number), os.O_CREAT, 0o600))
    return 1 << 10
fill(step)
";

const NAMES: &str = "
def step(at, number):
    if number == 0: os.close(os.open(at + '/file', os.O_CREAT, 0o600))
    os.link(at + '/file', at + '/' + str(number).zfill(255))
    return 700
fill(step)
";

const ATTRIBUTES: &str = "
try:
    os.close(os.open('/tmp/probe', os.O_CREAT, 0o600))
    os.setxattr('/tmp/probe', 'user.x', b'x')
except OSError as error:
    if error.errno == errno.ENOTSUP: sys.exit('unsupported')
    raise
def step(at, number):
    name = at + '/' + str(number // 100)
    if number % 100 == 0: os.close(os.open(name, os.O_CREAT, 0o600))
    os.setxattr(name, 'user.' + str(number), b'x' * 30000)
    return 32 << 10
fill(step)
";

const MESSAGES: &str = "
text = ctypes.create_string_buffer(b'\\1' + b'\\0' * 1007)
total = 0
while total < 6 * MOST:
    try: queue = call('msgget', 0, 0o600)
    except OSError as error:
        if error.errno == errno.ENOSPC: break
        raise
    for _ in range(16): call('msgsnd', queue, text, 1000, 0o4000)
    total += 16 * 1048
    got(total)
";

const SEMAPHORES: &str = "
total = 0
while total < 6 * MOST:
    call('semget', 0, 1000, 0o600)
    total += 1000 * 64
    got(total)
";

/// Beginning of those that need many descriptors.
const MANY: &str = "
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
if most < 20000: sys.exit('unsupported: few descriptors')
";

const PIPES: &str = "
total, ends = 0, []
while total < 6 * MOST:
    try: ends.append(os.pipe())
    except OSError: break
    os.set_blocking(ends[-1][1], False)
    total += os.write(ends[-1][1], b'x' * 65536)
    got(total)
";

const SOCKETS: &str = "
import socket
total, ends = 0, []
while total < 6 * MOST:
    try: ends.append(socket.socketpair())
    except OSError: break
    for end in ends[-1]:
        end.setblocking(False)
        try:
            while True: total += end.send(b'x' * 32768)
        except BlockingIOError: pass
    got(total)
";

const PROBES: [(&str, &str); 8] = [
    ("page tables", PAGE_TABLES),
    ("inodes", FILES),
    ("names", NAMES),
    ("attributes", ATTRIBUTES),
    ("messages", MESSAGES),
    ("semaphores", SEMAPHORES),
    ("pipes", PIPES),
    ("sockets", SOCKETS),
];

#[test]
fn what_the_kernel_keeps_for_a_command_is_part_of_its_limit() {
    for fixture in WAYS.into_iter().filter_map(|way| start_sandbox(way, &[LIMIT])) {
        let (reached, workspace) = (sandbox_info(&fixture), fixture.workspace("a"));
        for (name, probe) in PROBES {
            let mark = mark();
            let many = if ["pipes", "sockets"].contains(&name) { MANY } else { "" };
            let script = format!("{BEGINNING}{many}{probe}\ntime.sleep(float(sys.argv[1]))\n");
            fs::write(workspace.join("probe.py"), script).expect("the probe");
            fs::write(workspace.join("got"), "0").expect("its count");
            let command = format!("python3 probe.py {mark} {MOST}");
            if !ends_or_is_unsupported(&fixture, &command, &mark) {
                measure::print_report(format_args!(
                    "{} by {}: {name}: not on this kernel",
                    reached.way, reached.memory
                ));
                continue;
            }
            let got = fs::read_to_string(workspace.join("got")).expect("its count");
            let got = got.trim().parse::<u64>().expect("a number") >> 20;
            measure::print_report(format_args!("{} by {}: {name}: {got} MiB of {MOST}", reached.way, reached.memory));
            assert!(got < AT_MOST, "{} by {}: {name}: {got} MiB", reached.way, reached.memory);
        }
        assert_eq!(run_command(&fixture, "echo on").ok(), "on\n");
    }
}

/// That a probe is ended, which is true, or else says that the kernel has nothing of the kind.
fn ends_or_is_unsupported(fixture: &Fixture, command: &str, mark: &str) -> bool {
    let told = run_command(fixture, command);
    if told.text.contains("unsupported") {
        return false;
    }
    is_ended(fixture, &told, command, mark);
    true
}

#[test]
fn memory_cannot_be_given_to_a_pipe() {
    for fixture in WAYS.into_iter().filter_map(|way| start_sandbox(way, &[LIMIT])) {
        let script = "import ctypes, errno\nc = ctypes.CDLL(None, use_errno=True)\n\
                      c.vmsplice(1, None, 0, 0)\nprint(ctypes.get_errno() == errno.ENOSYS)";
        assert_eq!(run_command(&fixture, &format!("python3 -c '{script}'")).ok(), "True\n");
    }
}
