# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# The makefile at the top refuses what can't work, and runs nothing under make -n.  Sourced by
# tools/vm/selftest.

# A checkout whose tools only say that they were run, and a kernel tree that says so.
fake=$tmp/fake
mkdir -p "$fake/tools/env" "$fake/kernel/include/config"
cp "$TOP/Makefile" "$fake/"
printf '#!/bin/sh\necho "$@" >>%s/ran\n' "$fake" >"$fake/tools/env/make"
chmod +x "$fake/tools/env/make"
echo 'CONFIG_RUST=y' >"$fake/kernel/include/config/auto.conf"
echo '7.3.0-fake' >"$fake/kernel/include/config/kernel.release"
printf '%%:\n\t@echo "$@ $(KFI_TESTS)" >>%s/ran\n' "$fake" >"$fake/kernel/Makefile"

# in_fake TITLE STATUS PATTERN RAN ARGUMENT...: make with these arguments ends with STATUS, says
# PATTERN, and has run RAN, one command after the other.
in_fake()
{
	local title=$1 status=$2 pattern=$3 ran=$4 rc=0 got
	shift 4

	rm -rf "$fake/build"
	: >"$fake/ran"
	env -u MAKEFLAGS -u MAKELEVEL -u KDIR timeout 60 make -C "$fake" "$@" >"$tmp/out" 2>&1 || rc=$?
	got=$(paste -sd, "$fake/ran")
	if [ $rc = "$status" ] && [ "$got" = "$ran" ] && tr '\n' ' ' <"$tmp/out" | grep -q -- "$pattern"; then
		result 0 "make: $title"
	else
		echo "wanted exit $status, '$pattern', '$ran'; got exit $rc, '$got'" >>"$tmp/out"
		result 1 "make: $title"
	fi
}

in_fake "an empty KDIR is an error that names the right commands" 2 \
	'make KDIR=/path/to/kernel clippy.*make clippy. without KDIR' '' KDIR= clippy
in_fake "and so it is in the environment" 2 'make modules. without KDIR' '' -e --eval='export KDIR=' modules
in_fake "without KDIR, the environment's make" 0 '' 'newest modules V=1' modules V=1
in_fake "-n runs nothing without KDIR" 0 'tools/env/make .*newest.* modules' '' -n modules
for i in modules modules_install clippy install-dev; do
	in_fake "-n runs nothing with KDIR: $i" 0 '-C .*/kernel' '' -n "KDIR=$fake/kernel" $i
	[ ! -e "$fake/build" ] && ok=0 || ok=1
	result $ok "make: nor makes it a directory: $i"
done
in_fake "what is only called n is no -n" 0 '' 'modules ' "KDIR=$fake/kernel" n=n modules
in_fake "tests are installed if wanted only" 0 '' 'modules n,modules_install n' \
	"KDIR=$fake/kernel" modules_install
in_fake "tests are installed if wanted" 0 '' 'modules y,modules_install y' \
	"KDIR=$fake/kernel" modules_install KFI_TESTS=y

# refused TITLE PATTERN ARGUMENT...: tools/env/make refuses it on a host other than Debian 13, before it
# makes anything of the environment.
refused()
{
	local title=$1 pattern=$2 rc=0
	shift 2

	env -u INSTALL_MOD_PATH -u DESTDIR KFABRIC_FORCE_ROOT=1 KFABRIC_CACHE="$tmp/no-cache" \
		KFABRIC_MIRROR=file:///nonexistent PATH="$tmp/no-root:$PATH" \
		timeout 60 "$TOP/tools/env/make" "$@" >"$tmp/out" 2>&1 || rc=$?
	if [ $rc = 1 ] && [ "$(wc -l <"$tmp/out")" = 1 ] && grep -q "^error: .*$pattern" "$tmp/out"; then
		result 0 "make: $title"
	else
		echo "wanted '$pattern', exit $rc" >>"$tmp/out"
		result 1 "make: $title"
	fi
}
# Without a root user no environment is made, should a refusal be missing.
mkdir "$tmp/no-root"
printf '#!/bin/sh\n[ "$1" = -u ] && echo 1000 || exec /usr/bin/id "$@"\n' >"$tmp/no-root/id"
chmod +x "$tmp/no-root/id"

where="make KDIR=/path/to/kernel modules_install"
refused "modules_install into the root directory" "make modules_install INSTALL_MOD_PATH=$TOP/.*$where" \
	newest modules_install
refused "modules_install where only the root directory sees it" "$where" \
	newest modules_install INSTALL_MOD_PATH=/srv/dest
where="make KDIR=/path/to/kernel install-dev"
refused "install-dev into the root directory" "make install-dev DESTDIR=$TOP/.*$where" newest install-dev
refused "install-dev with an empty DESTDIR" "$where" newest install-dev DESTDIR=
refused "install-dev where only the root directory sees it" "$where" newest install-dev DESTDIR=/srv/dest
refused "no kernel" "KERNEL='' is no kernel" '' modules
refused "a kernel that is not known" "KERNEL='9.9' .*as in make KERNEL=7.3 modules" 9.9 modules
# One below the checkout gets as far as making the environment.
refused "install-dev below the checkout is no such case" "making the toolchain root needs root" \
	newest install-dev "DESTDIR=$TOP/build/dest"
