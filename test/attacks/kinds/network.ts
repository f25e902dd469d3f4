/** The network: every address, every family. */
import type { Attack } from "../attack.ts";

export const network: Attack[] = [
  {
    name: "loopback, the host's services and the supervisor itself",
    source: `
for host in ("127.0.0.1", "127.1.2.3", "0.0.0.0", "localhost"):
    for port in (targets["tcp_port"], targets["supervisor_port"], 22, 80, 49983):
        attempt(f"{host}:{port}", lambda: socket.create_connection((host, port), 0.2) and "connected")
def listen():
    server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
    return server.getsockname()
attempt("listen", listen)
report()
`,
    worksOutside: true,
  },
  {
    name: "metadata addresses, the internet and names",
    source: `
for host, port in (("169.254.169.254", 80), ("169.254.170.2", 80), ("100.100.100.200", 80), ("1.1.1.1", 53), ("10.0.0.1", 80)):
    attempt(host, lambda: socket.create_connection((host, port), 0.2) and "connected")
    def send():
        packet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); return packet.sendto(b"x", (host, port))
    attempt(f"{host} by packet", send)
attempt("name", lambda: socket.getaddrinfo("example.com", 80))
def fetch():
    import urllib.request
    return urllib.request.urlopen("http://169.254.169.254/", timeout=0.2).read()
attempt("fetch", fetch)
report()
`,
  },
  {
    name: "the sixth version",
    source: `
for host in ("::1", "::", "fe80::1", "fd00:ec2::254", "::ffff:127.0.0.1"):
    for port in (targets["tcp_port"], targets["supervisor_port"], 80):
        attempt(host, lambda: socket.create_connection((host, port), 0.2) and "connected")
report()
`,
  },
  {
    name: "every other family of sockets",
    source: `
for family in [*range(0, 46), 0x10001, 0x100000001 & 0xFFFFFFFF, 1 << 31]:
    if family == socket.AF_UNIX: continue
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET, 10):
        attempt(f"family {family} kind {kind}", lambda: syscall(41 if ON_X86 else 198, family, kind, 0))
        attempt(f"pair of {family}", lambda: syscall(53 if ON_X86 else 199, family, kind, 0, ctypes.create_string_buffer(8)))
report()
`,
    worksOutside: true,
  },
  {
    name: "interfaces and routes",
    source: `
for path in ("tcp", "tcp6", "udp", "route", "arp"): attempt(path, lambda: open("/proc/net/" + path).read().splitlines()[1:] or None)
attempt("named sockets", lambda: [line for line in open("/proc/net/unix").read().splitlines()[1:] if len(line.split()) > 7] or None)
import fcntl
local = socket.socket(socket.AF_UNIX)
attempt("interface", lambda: fcntl.ioctl(local, 0x8913, struct.pack("256s", b"eth0")))
attempt("up", lambda: fcntl.ioctl(local, 0x8914, struct.pack("16sh14s", b"lo", 1, b"")) and "up")
report()
`,
  },
];
