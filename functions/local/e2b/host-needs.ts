import { Fault } from "../../rewards/faults.ts";

const NEEDS = `Needed are Linux 5.12 or later, python3 3.9 or later in PATH, and user namespaces that this user may create:
- anywhere: sysctl user.max_user_namespaces above 0
- Ubuntu 23.10 and later: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
- older Debian: sysctl -w kernel.unprivileged_userns_clone=1
- in Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`;

/** The error for a host that lets nobody make an isolated sandbox. Nothing is ever run with less isolation instead. */
export function unfitHost(detail: string): Fault {
  return new Fault("isolation_failed", `Sandboxes can't be made on this host: ${detail}\n${NEEDS}`);
}
