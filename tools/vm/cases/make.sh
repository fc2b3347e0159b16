# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# The makefile at the top refuses what can't work, and runs nothing under make -n.  Sourced by
# tools/vm/selftest.

# A checkout whose tools only say that they were run, and a kernel tree that says so.
fake=$tmp/fake
mkdir -p "$fake/tools/env" "$fake/tools/vm" "$fake/kernel/include/config" "$fake/kernel/rust" "$fake/bin"
cp "$TOP/Makefile" "$fake/"
printf '#!/bin/sh\necho "$@" >>%s/ran\n' "$fake" >"$fake/tools/env/make"
printf '#!/bin/sh\necho stress "$@" >>%s/ran\n' "$fake" >"$fake/tools/vm/stress"
for i in rustc bindgen; do
	printf '#!/bin/sh\necho made up\n' >"$fake/bin/$i"
done
printf '#!/bin/sh\n[ $1 = -dumpversion ] && echo 14 || echo "made-up-gcc (made up) 14.2"\n' >"$fake/bin/made-up-gcc"
printf '#!/bin/sh\necho x86_64\n' >"$fake/bin/uname"
chmod +x "$fake/tools/env/make" "$fake/tools/vm/stress" "$fake"/bin/*
cat >"$tmp/auto.conf" <<'END'
CONFIG_X86_64=y
CONFIG_RUST=y
CONFIG_INFINIBAND=m
CONFIG_INFINIBAND_ADDR_TRANS=y
CONFIG_CC_VERSION_TEXT="made-up-gcc (made up) 14.2"
CONFIG_GCC_VERSION=140200
CONFIG_CLANG_VERSION=0
CONFIG_RUSTC_VERSION_TEXT="made up"
END
whole_tree()
{
	cp "$tmp/auto.conf" "$fake/kernel/include/config/"
	echo '7.3.0-fake' >"$fake/kernel/include/config/kernel.release"
	: >"$fake/kernel/rust/libkernel.rmeta"
}
whole_tree
printf '%%:\n\t@echo "$@ $(KFI_TESTS)" >>%s/ran\n' "$fake" >"$fake/kernel/Makefile"

# in_fake TITLE STATUS PATTERN RAN ARGUMENT...: make with these arguments ends with STATUS, says
# PATTERN, and has run RAN, one command after the other.
in_fake()
{
	local title=$1 status=$2 pattern=$3 ran=$4 rc=0 got
	shift 4

	rm -rf "$fake/build"
	: >"$fake/ran"
	env -u MAKEFLAGS -u MAKELEVEL -u KDIR -u CC -u ARCH -u KERNEL "PATH=$fake/bin:$PATH" timeout 60 make -C "$fake" "$@" >"$tmp/out" 2>&1 || rc=$?
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
in_fake "ARCH=arm64, in the environment" 0 '' 'newest-arm64 modules' ARCH=arm64 modules
in_fake "an ARCH that is not known" 2 'ARCH=riscv is neither x86_64 nor arm64' '' ARCH=riscv modules
in_fake "stress, of all kernels" 0 '' 'stress' stress
in_fake "stress, of the newest kernel only" 0 '' 'stress newest' stress KERNEL=newest
for i in demo deb test test-all kfi kfi-check; do
	in_fake "no KERNEL= for $i" 2 "make $i takes no KERNEL=9.9" '' $i KERNEL=9.9
done
for i in demo deb soak stress bench profile kfi kfi-check; do
	in_fake "no ARCH= for $i" 2 "make $i takes no ARCH=arm64" '' ARCH=arm64 $i
done
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

# guard TITLE PATTERN CHANGE [ARGUMENT...]: after CHANGE of the tree, make modules runs nothing and says
# PATTERN, in one line.
guard()
{
	local title=$1 pattern=$2 change=$3 lines
	shift 3

	(cd "$fake/kernel" && eval "$change")
	in_fake "a tree $title" 2 "KDIR=$fake/kernel $pattern" '' "KDIR=$fake/kernel" "$@" modules
	lines=$(grep -vc '^make: \(Entering\|Leaving\)' "$tmp/out" || :)
	[ "$lines" = 1 ] && ok=0 || ok=1
	result $ok "make: a tree $title: says so in one line"
	whole_tree
}
conf=include/config/auto.conf
guard "of an older kernel" 'is Linux 7.1.9. .*7.2 7.3 only' 'echo 7.1.9 >include/config/kernel.release'
guard "of a newer kernel" 'is Linux 7.4-rc1. .*7.2 7.3 only' 'echo 7.4-rc1 >include/config/kernel.release'
guard "for another architecture" 'is not for x86_64 or arm64' "sed -i s/X86_64/RISCV/ $conf"
guard "for arm64, where ARCH= is not given" 'is for arm64, but ARCH is x86_64; give ARCH=arm64' "sed -i s/X86_64/ARM64/ $conf"
guard "for another architecture than ARCH=" 'is for x86_64, but ARCH is arm64; give ARCH=x86_64' : ARCH=arm64
guard "without Rust" 'has no CONFIG_RUST=y' "sed -i /CONFIG_RUST=/d $conf"
guard "without RDMA" 'lacks CONFIG_INFINIBAND=m' "sed -i /INFINIBAND=/d $conf"
guard "without the connection manager" 'lacks .* CONFIG_INFINIBAND_ADDR_TRANS=y' "sed -i /ADDR_TRANS/d $conf"
guard "without Rust metadata" 'has no Rust metadata (rust/libkernel.rmeta).*install.md' 'rm rust/libkernel.rmeta'
guard "of another major version of the compiler" \
	'was configured with made-up-gcc (made up) 15.1, but made-up-gcc is made-up-gcc (made up) 14.2; .*CC=' \
	"sed -i 's/14[.]2/15.1/; s/=1402/=1501/' $conf"
guard "of a compiler that is not installed" 'was configured with other-gcc .*, but other-gcc is not installed; .*CC=' \
	"sed -i s/made-up-gcc/other-gcc/ $conf"
guard "of another rustc" 'was configured with rustc 1.0 .*, but rustc is made up; .*RUSTC=' \
	"sed -i '/RUSTC/s/made up/rustc 1.0 (x)/' $conf"
guard "where rustc is not installed" 'was configured with made up, but no-rustc is not installed' : RUSTC=no-rustc
guard "where bindgen is not installed" 'needs bindgen, which is not installed' : BINDGEN=no-bindgen
sed -i 's/14[.]2"/14.1 (of another distribution)"/; s/=140200/=140100/' "$fake/kernel/$conf"
in_fake "another minor version of the compiler will do" 0 '' 'modules ' "KDIR=$fake/kernel" modules
whole_tree
sed -i s/made-up-gcc/other-gcc/ "$fake/kernel/$conf"
in_fake "all refuses what modules refuses" 2 'other-gcc .*, but other-gcc is not installed' '' "KDIR=$fake/kernel" all
whole_tree
sed -i s/X86_64/ARM64/ "$fake/kernel/$conf"
in_fake "ARCH= names the architecture of the tree" 0 '' 'modules ' "KDIR=$fake/kernel" ARCH=arm64 modules
whole_tree
echo 7.4.0 >"$fake/kernel/include/config/kernel.release"
in_fake "UNSUPPORTED=y tries a newer kernel" 0 '' 'modules ' "KDIR=$fake/kernel" UNSUPPORTED=y modules
whole_tree
sed -i 's/made-up-gcc/other-gcc/; s/=1402/=1501/' "$fake/kernel/$conf"
in_fake "CC= names another compiler" 0 '' 'modules ' "KDIR=$fake/kernel" CC=made-up-gcc modules
in_fake "to check formatting, no compiler is needed" 0 'rustfmt' '' "KDIR=$fake/kernel" -n fmt-check

# unknown COMMAND...: it refuses a kernel that is not known, and names those that are.
unknown()
{
	local rc=0

	timeout 60 "$@" >"$tmp/out" 2>&1 </dev/null || rc=$?
	[ $rc = 1 ] && grep -q "^error: KERNEL='9.9' .* 7.2 7.3 newest debug" "$tmp/out" &&
		[ "$(wc -l <"$tmp/out")" = 1 ] && ok=0 || ok=1
	result $ok "make: a kernel that is not known: ${1#"$TOP/"}"
}
unknown "$TOP/tools/env/setup" 7.3 9.9
unknown "$TOP/tools/env/kdir" 9.9
unknown "$here/shell" 9.9
unknown "$here/soak" 9.9
unknown "$here/run" --kernel 9.9
unknown "$here/stress" 7.3 9.9

# newest TOOL KERNEL [ARGUMENT...]: tests that TOOL takes "newest", with the flavour of KERNEL appended, for KERNEL. The
# cache has only KERNEL. The tool fails after it has built the modules, because the checkout has nothing else.
newest()
{
	local tool=$1 kernel=$2
	shift 2

	rm -rf "$fake/cache" "$fake/build"
	mkdir -p "$fake/cache/stock-$kernel/src" "$fake/build/log" "$(dirname "$fake/tools/$tool")"
	: >"$fake/cache/stock-$kernel/src/.complete"
	: >"$fake/ran"
	cp "$TOP/tools/$tool" "$fake/tools/$tool"
	KFABRIC_FORCE_ROOT=1 KFABRIC_CACHE=$fake/cache timeout 60 "$fake/tools/$tool" "$@" "newest${kernel#7.3}" \
		>"$tmp/out" 2>&1 </dev/null || :
	cat "$fake/ran" >>"$tmp/out"
	[ "$(cat "$fake/ran")" = "$kernel modules" ] && ok=0 || ok=1
	result $ok "make: $tool: newest${kernel#7.3} is $kernel"
}
cp "$TOP/tools/env/lib.sh" "$fake/tools/env/"
printf '#!/bin/sh\n' >"$fake/tools/env/setup"
chmod +x "$fake/tools/env/setup"
for i in 7.3 7.3-arm64 7.3-arm64-16k; do
	newest bench/run $i
	newest bench/profile/run $i reg.kmalloc.1
	newest vm/soak $i
done

# tool_refuses TOOL PATTERN ARGUMENT...: tools/vm/TOOL refuses these arguments.
tool_refuses()
{
	local tool=$1 pattern=$2 rc=0
	shift 2

	timeout 60 "$here/$tool" "$@" >"$tmp/out" 2>&1 </dev/null || rc=$?
	[ $rc = 1 ] && grep -q -- "^error: $pattern" "$tmp/out" && [ "$(wc -l <"$tmp/out")" = 1 ] && ok=0 || ok=1
	result $ok "$tool: refuses $*"
}
for i in kernel modules script file log timeout append memory link life plugin; do
	tool_refuses run "--$i needs a value" --$i
done
for i in kernel peer-kernel modules peer-modules script peer-script log file append memory timeout; do
	tool_refuses pair "--$i needs a value" --$i
done
tool_refuses run "--shell .* leave out --shell or --script" --shell --script /dev/null
tool_refuses run "--memory needs a number, not 'much'" --memory much
tool_refuses run "--life needs a number, not 'x'" --life x
KFABRIC_FORCE_ROOT=1 tool_refuses ../package "/tmp/deb is not below $TOP" /tmp/deb
tool_refuses demo "tools/vm/demo takes no arguments" 7.2
PARTS="random nosuch" tool_refuses stress "PARTS='nosuch' is none of: random model" 7.3

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
