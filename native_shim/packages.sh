#!/bin/sh
# Installs the Debian packages that are missing, and says nothing if none is. Usage: packages.sh PYTHON [test]
set -eu
python=$1
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
case $version in
3.[0-9] | 3.10 | 2.*) echo "cl_driver needs Python 3.11 or newer; $python is $version" >&2 && exit 1 ;;
esac

if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian: needs a C compiler, clang 20 or newer, OpenCL headers and loader, clinfo" >&2
    exit 0
fi

wanted="gcc libc6-dev binutils clang-22 opencl-c-headers ocl-icd-libopencl1 ocl-icd-opencl-dev clinfo"
if [ "$prefix" = /usr ]; then
    wanted="$wanted python$version-venv libpython$version libpython$version-dev"
fi
if [ "${2:-}" = test ]; then
    wanted="$wanted spirv-tools gdb libc6-dev-arm64-cross openssl"
fi

missing=
for package in $wanted; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
    *" installed") ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

echo "apt install$missing"
root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "needs root or sudo to install:$missing" >&2; exit 1; }
    root=sudo
fi
# A fresh machine has no package lists yet; one that has them may not know the newest package.
$root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends $missing >/dev/null 2>&1 || {
    $root apt-get update -q
    $root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends $missing
}
