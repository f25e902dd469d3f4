#!/bin/bash
# One case: everything read-only but two small tmpfs, few processes, nobody's rights, a fresh interpreter.
set -eu
mount --make-rprivate /
mount --bind / /
mount -o remount,bind,ro /
mount -t tmpfs -o size=16m,mode=1777 recipe /tmp
mount -t tmpfs -o size=16m,mode=1777 recipe /dev/shm
cd /tmp
ulimit -f 64 -u 16
exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
  python3 -I -B -c 'import os, runpy; os.write(3, b"entered"); os.close(3); runpy.run_path("/opt/recipe/program.py", run_name="__main__")'
