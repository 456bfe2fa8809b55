# memscope: build, test, lint. `make help` lists every target.
#
# Sources are found by wildcard: a new file in a room needs no change here.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' '$(1)' '$(2)')

CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
ARCH    ?= $(shell uname -m | sed -e s/amd64/x86_64/ -e s/arm64/aarch64/)
BPFARCH := $(if $(filter aarch64,$(ARCH)),arm64,x86)
VMARCH  := $(if $(filter aarch64,$(ARCH)),arm64,x86_64)

PKGS     := libbpf libelf libdw zlib liblzma libzstd libprotobuf-c libcjson ncursesw yajl libmicrohttpd libseccomp
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
            -Wvla -Wno-unused-parameter -Wno-missing-field-initializers -Werror
CFLAGS   ?= -O2 -g
# Where a file is built is in no object: two builds in two places are equal, byte for byte (make reproducible).
ANYWHERE := -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(abspath $(BUILD))=build
# Against what a file made for it could do to a root process that has a mistake. Sanitizers bring checks of their own.
CET      := $(if $(filter aarch64,$(ARCH)),-mbranch-protection=standard,-fcf-protection=full)
HARDEN   := -fPIE -fstack-protector-strong -fstack-clash-protection $(CET)
HARDEN_LD := $(if $(STATIC),-static-pie,-pie) -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code
# The third level, where the compiler and the C library have it: they say so where they do not.
HASH     := \#
FORTIFY_LEVEL := $(if $(shell echo '$(HASH)include <features.h>' | $(CC) -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -E -x c - 2>&1 >/dev/null),2,3)
FORTIFY   = $(if $(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY_LEVEL))
ALL_CFLAGS = $(CFLAGS) $(HARDEN) $(FORTIFY) $(ANYWHERE) $(if $(STATIC),-DMEMSCOPE_STATIC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(SAN) -Iuser -Ibpf -I$(BUILD)/gen \
            $(shell pkg-config --cflags $(PKGS)) -MMD -MP
# The decoder of x86 instructions; Debian's has no pkg-config file.
LIBZYDIS := $(if $(filter x86_64,$(ARCH)),-lZydis)
LDLIBS    = $(if $(STATIC),$(ARCHIVES),$(shell pkg-config --libs $(PKGS)) $(LIBZYDIS)) -liberty -lm -pthread
# The same and what they use, for `make static`; the last of libmicrohttpd's are GnuTLS and its own.
ARCHIVES  = -L$(BUILD)/libraries -lbpf -ldw -lelf -lbz2 -llzma -lz -lzstd -lprotobuf-c -lcjson -lncursesw -ltinfo -lyajl_s -lseccomp \
            $(LIBZYDIS) -lmicrohttpd -lgnutls -lhogweed -lnettle -lgmp -lidn2 -lunistring -ltasn1 -lp11-kit

BPF_SRC  := $(wildcard bpf/*.bpf.c bpf/*/*.bpf.c)
BPF_OBJ  := $(BPF_SRC:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
SKEL     := $(BUILD)/gen/memscope.skel.h
PB       := $(BUILD)/gen/profile.pb-c
TOPICS   := $(basename $(notdir $(wildcard user/cmd/topics/*.txt)))
REPORT   := user/render/assets/report
ASSETS   := $(wildcard user/render/assets/*.* $(REPORT)/page.html $(REPORT)/theme.js user/cmd/topics/*.txt) \
            $(BUILD)/gen/report.js $(BUILD)/gen/report.css
ROOMS    := $(filter-out user/cmd user/preload,$(patsubst %/,%,$(wildcard user/*/)))
LIB_SRC  := $(foreach r,$(ROOMS),$(wildcard $(r)/*.c $(r)/*/*.c))
LIB_OBJ  := $(LIB_SRC:user/%.c=$(BUILD)/user/%.o) $(if $(wildcard user/model/*.proto),$(BUILD)/gen/profile.pb-c.o) $(BUILD)/gen/assets.o
CMD_SRC  := $(wildcard user/main.c user/cmd/*.c user/cmd/*/*.c)
CMD_OBJ  := $(CMD_SRC:user/%.c=$(BUILD)/user/%.o)
# FROM: another build, whose objects are taken but for those of files that load libraries, which a static program does not.
OWN_SRC  := $(if $(FROM),$(shell grep -rlE --include=*.c 'base/library\.h|MEMSCOPE_STATIC' user))
objects_of = $(foreach o,$(1),$(if $(filter $(o:$(BUILD)/%.o=%.c),$(OWN_SRC)),$(o),$(o:$(BUILD)/%=$(FROM)/%)))
ifneq ($(FROM),)
LIB_OBJ  := $(call objects_of,$(LIB_OBJ))
CMD_OBJ  := $(call objects_of,$(CMD_OBJ))
endif

# $(call others,FILE,LIST): something to do, where FILE was last made of other files than LIST: a file that went
# leaves nothing newer behind. FILE's recipe ends with $(noted).
others = $(if $(filter-out $(2),$(file <$(1).of))$(filter-out $(file <$(1).of),$(2)),anew)
noted  = echo $(filter-out anew,$^) > $@.of

# No .SECONDARY: with it, an object that is missing is made only if its source is newer than what it goes into.
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: anew
.PHONY: all
all: memscope libmemscope-alloc.so ## the program and its library (default)

memscope libmemscope-alloc.so: %: $(BUILD)/%
	$(Q)cp -f $< $@

# Runs inside other programs: the same whatever else is built, and nothing but libc. Of CET the shadow stack alone, without whose mark (which
# Debian 12 has not in its own start files) a program that has one would not load it: marks of jumps would be an instruction in each malloc.
CET_PRELOAD := $(if $(filter aarch64,$(ARCH)),,-fcf-protection=return)
PRELOAD_CFLAGS := -O2 -g -std=gnu11 -D_GNU_SOURCE $(WARN) -Iuser -Ibpf -shared -fPIC -fvisibility=hidden -fno-builtin \
            -ftls-model=initial-exec $(CET_PRELOAD) $(ANYWHERE) -Wl,-z,relro -Wl,-z,noexecstack -Wl,-z,separate-code
$(BUILD)/libmemscope-alloc.so: $(wildcard user/preload/*.[ch] bpf/*.h bpf/walk/*.h)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(PRELOAD_CFLAGS) -Wl,-z,now -Wl,-z,defs -Wl,-Bsymbolic-functions -Wl,-soname,$(@F) -o $@ $(filter %.c,$^)

MEMSCOPE_OF := $(CMD_OBJ) $(BUILD)/libmemscope.a
$(BUILD)/memscope: $(MEMSCOPE_OF) $(call others,$(BUILD)/memscope,$(MEMSCOPE_OF))
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(HARDEN_LD) $(LDFLAGS) -o $@ $(MEMSCOPE_OF) $(LDLIBS) $(if $(STATIC),$(archives)) && $(noted)

# What was linked in, for its list (make sbom); of warnings those are left out that say of a C library what libraries of others call: what
# loads more is never called.
archives = -Wl,--trace > $@.archives 2> $@.warnings || { cat $@.warnings >&2; exit 1; }; \
	sed -nE 's/^\(?([^()]+\.a)\)?.*/\1/p' $@.archives | sort -u > $@.linked && mv $@.linked $@.archives

$(BUILD)/libmemscope.a: $(LIB_OBJ) $(call others,$(BUILD)/libmemscope.a,$(LIB_OBJ))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ) && $(noted)

# Only the rooms that include a generated header wait for it.
$(patsubst user/%.c,$(BUILD)/user/%.o,$(wildcard user/collect/*/*.c)): | $(if $(BPF_SRC),$(SKEL))
$(patsubst user/%.c,$(BUILD)/user/%.o,$(wildcard user/model/*.c)): | $(PB).h

$(BUILD)/user/%.o: user/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -c -o $@ $<

# --- generated: BPF objects joined into one skeleton, protobuf code, embedded assets -------------

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h bpf/*/*.h bpf/*.def) vmlinux/$(VMARCH)/vmlinux.h
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Werror \
		-Wno-unused-parameter -Wno-missing-field-initializers -Wno-unused-function \
		-ffile-prefix-map=$(CURDIR)=. -D__TARGET_ARCH_$(BPFARCH) $(BPF_DEFS) -Ibpf -Ivmlinux/$(VMARCH) -c -o $@ $<

ifneq ($(BPF_SRC),)
$(BUILD)/bpf/memscope.bpf.o: $(BPF_OBJ) $(call others,$(BUILD)/bpf/memscope.bpf.o,$(BPF_OBJ))
	$(call say,GENOBJ,$@)
	$(Q)$(BPFTOOL) gen object $@ $(BPF_OBJ) && $(noted)

$(SKEL): $(BUILD)/bpf/memscope.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name memscope_bpf > $@
endif

# The numbers of system calls, as the headers of this machine's kernel have them; the compiler evaluates them.
$(BUILD)/gen/base/syscall_numbers.h: Makefile
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && echo '#include <asm/unistd.h>' | $(CC) -E -dM - | \
		sed -nE '/__NR_(syscalls|arch_specific_syscall|syscall_max)\>/d; s/^#define __NR_([a-z0-9_]+) .*/CALL(\1)/p' | sort > $@
# Those of 32-bit programs, where this architecture has their header.
$(BUILD)/gen/base/syscall_numbers32.h: Makefile
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && echo '#include <asm/unistd_32.h>' | $(CC) -E -dM - 2>/dev/null | \
		sed -nE 's/^#define __NR_([a-z0-9_]+) ([0-9]+)$$/CALL(\2, \1)/p' | sort > $@

$(BUILD)/user/base/syscall_names.o: $(BUILD)/gen/base/syscall_numbers.h $(BUILD)/gen/base/syscall_numbers32.h

$(PB).c $(PB).h &: user/model/profile.proto
	$(call say,PROTOC,$<)
	$(Q)mkdir -p $(@D) && protoc-c --proto_path=user/model --c_out=$(BUILD)/gen $<

$(BUILD)/gen/profile.pb-c.o: $(PB).c
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(HARDEN) $(FORTIFY) $(ANYWHERE) $(SAN) -I$(BUILD)/gen -c -o $@ $<

# The script of report.html: its pieces in this order, what makes panes.add() first. Charts are drawn by uPlot, which
# `make deps` fetches; without it the page shows their tables instead.
UPLOT      := 1.6.32
UPLOT_SHA  := 2883159c6ebccefbb95d751b0b82d010f9e1c0ec41b8bc96d401eda66e882935c89a46cb824332fa369b8cb8122cc6ac36e186cd09bf7a9ded3a4c93c6989023
UPLOT_DIR  ?= build/uplot-$(UPLOT)
UPLOT_JS   := $(wildcard $(UPLOT_DIR)/LICENSE.js $(UPLOT_DIR)/uPlot.iife.min.js)
REPORT_FIRST := $(REPORT)/main.js $(REPORT)/data.js $(REPORT)/format.js
REPORT_JS  := $(UPLOT_JS) $(wildcard $(REPORT_FIRST)) \
              $(filter-out $(REPORT_FIRST) $(REPORT)/theme.js,$(sort $(wildcard $(REPORT)/*.js)))
REPORT_CSS := $(if $(UPLOT_JS),$(wildcard $(UPLOT_DIR)/uPlot.min.css)) $(sort $(wildcard $(REPORT)/*.css))
$(BUILD)/gen/report.js: $(REPORT_JS) $(call others,$(BUILD)/gen/report.js,$(REPORT_JS))
	$(Q)mkdir -p $(@D) && for f in $(REPORT_JS); do cat $$f; echo; done > $@ && $(noted)
$(BUILD)/gen/report.css: $(REPORT_CSS) $(call others,$(BUILD)/gen/report.css,$(REPORT_CSS))
	$(Q)mkdir -p $(@D) && for f in $(REPORT_CSS); do cat $$f; echo; done > $@ && $(noted)

# Each file of user/render/assets/ and user/cmd/topics/, and the joined ones, becomes asset_NAME_EXT[] and
# asset_NAME_EXT_len.
$(BUILD)/gen/assets.c: $(ASSETS) Makefile
	$(call say,EMBED,$@)
	$(Q)mkdir -p $(@D) && { for f in $(ASSETS); do n=asset_$$(basename $$f | tr '.-' '__'); \
		printf 'const char %s[] = {\n' $$n; od -An -v -tu1 $$f | sed 's/ *\([0-9][0-9]*\)/\1,/g'; \
		printf '0};\nconst unsigned %s_len = sizeof(%s) - 1;\n' $$n $$n; \
		printf 'const char %s_sha256[] = "%s";\n' $$n $$(sha256sum < $$f | cut -c1-64 | tr a-f A-F | \
			basenc -d --base16 | base64); done; } > $@

$(BUILD)/gen/assets.o: $(BUILD)/gen/assets.c
	$(Q)$(CC) $(CFLAGS) $(HARDEN) $(ANYWHERE) -w -c -o $@ $<

-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d)

# --- the manual and completion: printed by the program itself, from its options and topics -------------

$(BUILD)/memscope.1: $(BUILD)/memscope $(wildcard user/cmd/memscope.1.*)
	$(call say,MAN,$@)
	$(Q)sed -n 's/@VERSION@/$(VERSION)/; /^@OPTIONS@$$/q;p' user/cmd/memscope.1.in > $@ && $< --man >> $@ && \
		sed '1,/^@OPTIONS@$$/d' user/cmd/memscope.1.in >> $@

$(BUILD)/memscope-%.7: $(BUILD)/memscope
	$(call say,MAN,$@)
	$(Q)$< --man $* > $@

$(BUILD)/completion.%: $(BUILD)/memscope
	$(call say,SHELL,$@)
	$(Q)$< --completion $* > $@

MAN7  := $(TOPICS:%=$(BUILD)/memscope-%.7)
SHARE  = $(DESTDIR)$(PREFIX)/share
DOCS  := $(addprefix user/packaging/,CHANGELOG.md SECURITY.md STABILITY.md SUPPORT.md interface.txt)
.PHONY: install manual
manual: $(BUILD)/memscope.1 $(MAN7)
install: $(BUILD)/memscope $(BUILD)/libmemscope-alloc.so manual $(BUILD)/completion.bash $(BUILD)/completion.zsh ## install below PREFIX (/usr/local), DESTDIR before it
	install -D -m 0755 $(BUILD)/memscope $(DESTDIR)$(PREFIX)/bin/memscope
	install -D -m 0644 $(BUILD)/libmemscope-alloc.so $(DESTDIR)$(PREFIX)/lib/memscope/libmemscope-alloc.so
	install -D -m 0644 -t $(SHARE)/man/man1 $(BUILD)/memscope.1
	install -D -m 0644 -t $(SHARE)/man/man7 $(MAN7)
	install -D -m 0644 $(BUILD)/completion.bash $(SHARE)/bash-completion/completions/memscope
	install -D -m 0644 $(BUILD)/completion.zsh $(SHARE)/zsh/site-functions/_memscope
	sed 's|@PREFIX@|$(PREFIX)|' user/packaging/memscope.service > $(BUILD)/memscope.service
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system $(BUILD)/memscope.service
	install -D -m 0644 user/packaging/memscope.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/memscope.conf
	install -D -m 0644 -t $(SHARE)/memscope user/packaging/grafana/memscope.json user/packaging/prometheus/memscope.rules.yml
	install -D -m 0644 -t $(SHARE)/doc/memscope LICENSE $(DOCS)
	[ -e $(DESTDIR)/etc/memscope/memscope.conf ] || \
		install -D -m 0644 -t $(DESTDIR)/etc/memscope user/packaging/memscope.conf

# --- Debian's packages of it -----------------------------------------------------------------------

VERSION  := $(shell sed -n 's/^.define MEMSCOPE_VERSION "\(.*\)"/\1/p' user/base/version.h)
DEB_DIR   = $(abspath $(BUILD))/deb/memscope-$(VERSION)
# The time of the last change, so that a package is the same whenever it is built.
DEB_DATE  = $(shell git log -1 --format=%cD 2>/dev/null || date -R)
.PHONY: sbom deb
sbom: all ## what is in it and what it is linked to, as SPDX 2.3: BUILD/memscope.spdx.json
	$(call say,SBOM,$(BUILD)/memscope.spdx.json)
	$(Q)user/packaging/sbom $(BUILD) > $(BUILD)/memscope.spdx.json

deb: all manual ## memscope and memscope-doc as Debian packages, in BUILD/deb
	$(call say,DEB,$(VERSION))
	$(Q)rm -rf $(BUILD)/deb && mkdir -p $(DEB_DIR) && cp -r user/packaging/debian $(DEB_DIR)/debian && \
		sed -i -e 's|@VERSION@|$(VERSION)|' -e 's|@DATE@|$(DEB_DATE)|' $(DEB_DIR)/debian/changelog && \
		sed -i -e "s|@BUILD_DEPENDS@|debhelper-compat (= 13), $$(echo $(filter-out gcc libc6-dev make,$(DEPS_BUILD)) python3 | sed 's/ /, /g')|" \
			$(DEB_DIR)/debian/control && \
		cd $(DEB_DIR) && MEMSCOPE_TOP=$(CURDIR) BUILD=$(BUILD) BUILD_OF=$(abspath $(BUILD)) dpkg-buildpackage -b -us -uc > $(DEB_DIR)/../log 2>&1 || \
		{ cat $(DEB_DIR)/../log; exit 1; }

# --- a program that needs nothing of its host -------------------------------------------------------

.PHONY: static
static: $(BUILD)/memscope ## BUILD-static/memscope, which needs no library of its host; what loads some (--push, debuginfod) it has not
	$(call need,$(DEPS_BUILD) $(DEPS_STATIC))
	$(call say,STATIC,$(BUILD)-static)
	$(Q)user/packaging/static-libraries $(BUILD)-static/libraries
	$(Q)rm -rf $(BUILD)-static/bpf && ln -s $(abspath $(BUILD))/bpf $(BUILD)-static/bpf
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)-static FROM=$(BUILD) STATIC=1 $(BUILD)-static/memscope $(BUILD)-static/libmemscope-alloc.so

# --- another architecture ---------------------------------------------------------------------------

# BUILD-arm64/sysroot has the libraries; what is made beside the program, as tests/vm does: CROSS_MAKE="units targets".
DEPS_CROSS  := gcc-aarch64-linux-gnu g++-aarch64-linux-gnu
SYSROOT_OF   = $(filter lib%,$(filter-out libzydis-dev,$(DEPS_BUILD))) zlib1g-dev uthash-dev libstdc++-12-dev libcmocka-dev \
               libjemalloc-dev busybox-static python3
CROSS_BUILD := $(BUILD)-arm64
CROSS_ROOT  := $(abspath $(CROSS_BUILD))/sysroot
CROSS_CC     = $(strip $(LAUNCHER) aarch64-linux-gnu-$(1) --sysroot=$(CROSS_ROOT))
CROSS_MAKE  ?=
.PHONY: cross-arm64
cross-arm64: ## BUILD-arm64/memscope, compiled here for arm64
	$(call need,$(DEPS_BUILD) $(DEPS_CROSS))
	$(call say,ARM64,$(CROSS_BUILD))
	$(Q)user/packaging/sysroot arm64 $(CROSS_ROOT) $(SYSROOT_OF)
	$(Q)PKG_CONFIG_LIBDIR=$(CROSS_ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig:$(CROSS_ROOT)/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$(CROSS_ROOT) \
		$(MAKE) --no-print-directory BUILD=$(CROSS_BUILD) ARCH=aarch64 SYSROOT=$(CROSS_ROOT) CC="$(call CROSS_CC,gcc)" CXX="$(call CROSS_CC,g++)" \
		AR=aarch64-linux-gnu-ar OBJCOPY=aarch64-linux-gnu-objcopy $(CROSS_BUILD)/memscope $(CROSS_BUILD)/libmemscope-alloc.so $(CROSS_MAKE)

# --- every compiler ---------------------------------------------------------------------------------

# Those of Debian 12; the kernel's programs are compiled by each clang, too. gcc sees more when it makes code, clang all before.
COMPILERS ?= gcc-11 gcc-12 clang-13 clang-14 clang-15 clang-16 clang-19
COMPILED   = $(LIB_OBJ) $(CMD_OBJ) $(BUILD)/libmemscope-alloc.so
.PHONY: compilers compiled
compiled: $(COMPILED)
compilers: ## compile everything with each gcc and clang of Debian 12 that is installed, warnings as errors: in BUILD/with
	$(Q)mkdir -p $(BUILD); n=0; for cc in $(COMPILERS); do \
		command -v $$cc > /dev/null || { echo "  $$cc is not installed"; continue; }; \
		case $$cc in clang*) bpf=$$cc flags="-O2 -fsyntax-only" ;; *) bpf="$(CLANG)" flags=-O2 ;; esac; \
		$(MAKE) --no-print-directory BUILD=$(BUILD)/with/$$cc CC="$(LAUNCHER) $$cc" CLANG="$$bpf" CFLAGS="$$flags" -k compiled > $(BUILD)/compiled.log 2>&1 || \
			{ grep -v '^  ' $(BUILD)/compiled.log; echo "  $$cc does not compile it"; exit 1; }; \
		echo "  $$cc: no warning"; n=$$((n + 1)); \
	done; [ $$n -gt 0 ]

# --- packages --------------------------------------------------------------------------------------

# A Node.js from elsewhere brings its npm along, and Debian's npm does not go with it.
NODE       := $(if $(shell command -v node),,nodejs) $(if $(shell command -v npm),,npm)
DEPS_BUILD := gcc libc6-dev make pkg-config clang bpftool libbpf-dev libelf-dev zlib1g-dev \
              libprotobuf-c-dev protobuf-c-compiler libcjson-dev libyajl-dev uthash-dev libxxhash-dev libiberty-dev \
              libncurses-dev libdw-dev liblzma-dev libzstd-dev libcurl4-openssl-dev libmicrohttpd-dev libseccomp-dev libcapstone-dev $(if $(filter x86_64,$(ARCH)),libzydis-dev)
DEPS_TEST  := libcmocka-dev clang-19 libclang-rt-14-dev clang-format shellcheck python3 git procps groff-base man-db \
              g++ protobuf-compiler valgrind golang-go golang-github-google-pprof-dev chromium $(NODE) \
              redis-server redis-tools sqlite3 nginx-light xz-utils binutils llvm dwz libc6-dbg libdebuginfod1 \
              libjemalloc2 libjemalloc-dev libgoogle-perftools-dev google-perftools libtcmalloc-minimal4 libmimalloc2.0 musl-tools zsh gdb strace \
              gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static \
              qemu-system-x86 busybox-static cpio faketime podman runc docker.io linux-perf \
              libc++-14-dev libc++abi-14-dev graphviz heaptrack zstd python3-greenlet libboost-context-dev php8.2-cli php8.2-fpm pandoc ruby python3-pyte systemd prometheus python3-prometheus-client python3-yaml bpftrace \
              debhelper lintian debootstrap python3-license-expression
DEPS_STATIC := libbz2-dev libidn2-dev libunistring-dev nettle-dev libgmp-dev libtasn1-6-dev libgnutls28-dev dpkg-dev
DEPS_VM     = qemu-system-arm $(DEPS_CROSS)
DEPS_DEMO  := redis-server redis-tools procps
DEPS_BENCH := linux-perf bpftrace bpfcc-tools redis-server redis-tools \
              linux-headers-$(shell dpkg --print-architecture 2>/dev/null)
DEPS_ALLOC := heaptrack valgrind libjemalloc2 libjemalloc-dev libtcmalloc-minimal4 libgoogle-perftools4 libmimalloc2.0
DEPS_SITES := heaptrack valgrind libjemalloc2 libjemalloc-dev g++ python3 sqlite3 redis-server redis-tools postgresql
DEPS_READERS := libjemalloc2 libjemalloc-dev libtcmalloc-minimal4 libgoogle-perftools4 google-perftools golang-go heaptrack valgrind perl
DEPS_NAMES := g++ binutils llvm linux-perf time

# $(call need,PACKAGES): installs those that are missing, asks nothing, starts nothing.
define need
	@missing=$$(for p in $(1); do \
		[ "$$(dpkg-query -W -f='$${db:Status-Status}' $$p 2>/dev/null)" = installed ] || echo $$p; \
	done); \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" != 0 ]; then \
		echo "missing packages; as root: apt-get install --no-install-recommends" $$missing >&2; \
		exit 1; \
	fi; \
	echo "installing:" $$missing; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends \
		-o Dpkg::Use-Pty=0 $$missing > /dev/null
endef

.PHONY: deps deps-build deps-demo deps-bench deps-names
deps: ## install the packages that build and tests use (as root; only what is missing)
	$(call need,$(DEPS_BUILD) $(DEPS_TEST))
	+$(Q)$(MAKE) --no-print-directory uplot

# No registry that answers is no failure, other bytes than were reviewed are one.
.PHONY: uplot
uplot: ## fetch what draws the charts of report.html: uPlot from npm, by its checksum
	$(Q)[ -e $(UPLOT_DIR)/uPlot.iife.min.js ] && exit 0; \
	d=$$(mktemp -d) && trap 'rm -rf "$$d"' EXIT; \
	(cd "$$d" && npm pack --silent uplot@$(UPLOT) > /dev/null) || { \
		echo "npm cannot fetch uPlot $(UPLOT): report.html will show tables in place of charts" >&2; exit 0; }; \
	echo "$(UPLOT_SHA)  $$d/uplot-$(UPLOT).tgz" | sha512sum -c --quiet || exit 1; \
	mkdir -p $(UPLOT_DIR) && tar xzf "$$d/uplot-$(UPLOT).tgz" -C "$$d" && \
	{ echo '/*'; cat "$$d/package/LICENSE"; echo '*/'; } > $(UPLOT_DIR)/LICENSE.js && \
	cp "$$d"/package/dist/uPlot.min.css "$$d"/package/dist/uPlot.iife.min.js $(UPLOT_DIR)
deps-build: ## install only what the build uses
	$(call need,$(DEPS_BUILD))
deps-demo:
	$(call need,$(DEPS_BUILD) $(DEPS_DEMO))
deps-names:
	$(call need,$(DEPS_NAMES))
deps-bench: ## install what `make bench` compares with
	$(call need,$(DEPS_BUILD) $(DEPS_BENCH))

# --- tests ---------------------------------------------------------------------------------------

JOBS     ?= $(shell nproc)
# Live tests wait for three quarters of their time: for timers, and for the kernel's grace periods.
LIVE_JOBS ?= $(shell echo $$((2 * $(JOBS))))
UNIT_SRC := $(wildcard tests/unit/*/*.c)
UNIT_BIN := $(UNIT_SRC:tests/%.c=$(BUILD)/tests/%)
NAMES_BIN := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/names/*.c tests/lang/*.c tests/faults/*.c))
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
FUZZ_BIN := $(FUZZ_SRC:tests/%.c=$(BUILD)/tests/%)

# What is tested is compiled as ever; the tests themselves take twice as long with -O2, and do what is checked for.
UNIT_CFLAGS = $(patsubst -O2,-O1,$(filter-out $(HARDEN) $(FORTIFY) $(ANYWHERE),$(ALL_CFLAGS)))
$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libmemscope.a
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(UNIT_CFLAGS) -Itests -o $@ $< $(BUILD)/libmemscope.a $(LDLIBS) -lcmocka

# Tests of a run bring services of their own (tests/run_fixture.h): the first definition counts.
$(BUILD)/tests/unit/run/%: LDLIBS += -Wl,-z,muldefs
# So do those of what asks a session, which nothing but the kernel could load.
$(addprefix $(BUILD)/tests/unit/collect/,exact_limiter costs counter drain old_stacks wakers): LDLIBS += -Wl,-z,muldefs

# Calls of malloc stay what they are.
$(BUILD)/tests/unit/preload/alloc: ALL_CFLAGS += -fno-builtin

$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(BUILD)/libmemscope.a
	$(call say,FUZZ,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -fsanitize=fuzzer -o $@ $< $(BUILD)/libmemscope.a $(LDLIBS)

$(NAMES_BIN): $(BUILD)/tests/%: tests/%.c $(BUILD)/libmemscope.a
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libmemscope.a $(LDLIBS)

$(BUILD)/tests/bench/%: tests/bench/%.c $(BUILD)/libmemscope.a
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libmemscope.a $(LDLIBS)

CROSS_SRC := $(wildcard tests/unwind/*.c)
$(BUILD)/tests/unwind/crosscheck: $(CROSS_SRC) $(wildcard tests/unwind/*.h) $(BUILD)/libmemscope.a
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -o $@ $(CROSS_SRC) $(BUILD)/libmemscope.a $(LDLIBS)

# The walker as it is compiled for arm64, where there is a compiler: no library, so that it is one file.
CROSS_ARM64 := $(shell command -v aarch64-linux-gnu-gcc)
REPLAY_SRC  := tests/replay/replay.c $(wildcard user/unwind/host_walk.c user/unwind/publish*.c user/unwind/pool.c \
               user/unwind/shared_rules.c user/unwind/rules.c user/unwind/rule_ranges.c user/base/err.c user/base/hash.c)
REPLAY_DEP  := $(REPLAY_SRC) bpf/walk/walk_cfi.h bpf/walk/walk.h bpf/abi.h bpf/walk/rows.h
REPLAY_BIN  := $(BUILD)/tests/replay/replay \
               $(if $(filter-out aarch64,$(ARCH)),$(if $(CROSS_ARM64),$(BUILD)/tests/replay/replay_arm64))
$(BUILD)/tests/replay/replay: $(REPLAY_DEP)
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -o $@ $(REPLAY_SRC)
# uthash.h and xxhash.h are the same for every machine.
$(BUILD)/tests/replay/replay_arm64: $(REPLAY_DEP)
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D)/include && cp /usr/include/uthash.h /usr/include/xxhash.h $(@D)/include && \
		$(CROSS_ARM64) -static -O2 -g -std=gnu11 -D_GNU_SOURCE $(WARN) -Iuser -Ibpf -I$(@D)/include -o $@ $(REPLAY_SRC)

-include $(UNIT_BIN:=.d) $(FUZZ_BIN:=.d) $(NAMES_BIN:=.d) $(BUILD)/tests/bench/tables.d $(BUILD)/tests/bench/report_page.d

.PHONY: units fuzzers
units: $(UNIT_BIN) $(NAMES_BIN) $(if $(filter x86_64,$(ARCH)),$(BUILD)/tests/unwind/crosscheck) $(REPLAY_BIN) ## build the unit tests
fuzzers: $(FUZZ_BIN)

# Everything once more under clang, whose warnings are errors too: what the fuzzers reach is compiled, with the
# coverage that they need; of the rest nothing but the warnings is wanted.
FUZZ_BUILD := $(BUILD)-fuzz
FUZZ_ROOMS := base container elf heap import inject lang model net proc symbolize unwind
FUZZ_LIB   := $(foreach r,$(FUZZ_ROOMS),$(wildcard user/$(r)/*.c user/$(r)/*/*.c)) $(wildcard user/analyse/syscall_*.c) user/analyse/gc_counts.c \
              $(addprefix user/collect/probes/,function_place.c placement.c places_cell.c return_sites.c sampler_places.c samplers.c samplers_find.c allocators.c) \
              $(addprefix user/collect/events/,event_finds.c event_names.c event_search.c event_spec.c pmu.c) $(wildcard user/collect/stream/*.c) user/collect/session/sources.c \
              $(addprefix user/run/push/,labels.c otlp.c parts.c protocols.c pyroscope.c) \
              user/run/trigger.c user/screen/processes.c \
              user/render/finding.c user/render/shown.c user/render/formats/text.c user/render/formats/otlp.c
FUZZ_SAN   := -fsanitize=address,undefined -fno-sanitize-recover=undefined
# The kernel's programs are those of the build.
FUZZ_MAKE   = $(MAKE) --no-print-directory BUILD=$(FUZZ_BUILD) BPF_SRC= CC=clang CFLAGS="-O1 -gline-tables-only -I$(BUILD)/gen" \
              SAN="-fsanitize=fuzzer-no-link $(FUZZ_SAN)" LIB_SRC="$(FUZZ_LIB)"
CLANG_ONLY := $(patsubst user/%.c,$(FUZZ_BUILD)/checked/%,$(filter-out $(FUZZ_LIB),$(LIB_SRC) $(CMD_SRC)))

$(FUZZ_BUILD)/checked/%: user/%.c | $(SKEL) $(PB).h
	$(call say,CLANG,$<)
	$(Q)mkdir -p $(@D) && clang $(ALL_CFLAGS) -MF $@.d -MT $@ -fsyntax-only $< && touch $@

-include $(CLANG_ONLY:=.d)

.PHONY: clang
clang: $(CLANG_ONLY) $(SKEL) ## compile everything with clang, what fuzzers reach instrumented for them
	+$(Q)$(FUZZ_MAKE) $(FUZZ_BUILD)/libmemscope.a
	+$(Q)if [ -e "$$(clang -print-file-name=libclang_rt.fuzzer-$$(uname -m).a)" ]; then $(FUZZ_MAKE) fuzzers; fi

FUZZ_TOTAL   ?= 100000000
FUZZ_JOBS    ?= 1
FUZZ_MINUTES ?= 0
FUZZ_CAP     ?= 1800
.PHONY: fuzz-long fuzz-minimal
fuzz-long: clang ## every fuzzer, FUZZ_TOTAL=100000000 inputs in all, FUZZ_JOBS=1 at a time: what was done, as a table (tests/fuzz/long)
	$(Q)FUZZ_BUILD=$(FUZZ_BUILD) tests/fuzz/long --total $(FUZZ_TOTAL) --jobs $(FUZZ_JOBS) --minutes $(FUZZ_MINUTES) --cap $(FUZZ_CAP) $(FUZZ_ONLY)
fuzz-minimal: clang ## the corpora, with what fuzz-long has found, made small again
	$(Q)FUZZ_BUILD=$(FUZZ_BUILD) tests/fuzz/long --minimal $(FUZZ_ONLY)

fuzz-%: clang ## fuzz-PARSER: one fuzzer until stopped; what it finds is kept in its corpus
	$(Q)mkdir -p tests/fuzz/corpus/$*
	$(FUZZ_BUILD)/tests/fuzz/$* -artifact_prefix=$(FUZZ_BUILD)/ -timeout=10 tests/fuzz/corpus/$*

# Programs that others may run beside run so, one a CPU, or two where live ones are among them; the rest one by
# one (tests/run).
SUITES_FREE := unit preload golden replay names faults lint install fuzz
SUITES_ROOT := bpf vm live answers consumers browser

.PHONY: golden-update test check test-live test-free check-all lint asan ubsan sanitized valgrind analyzer
test: all units clang ## all tests that need no rights
	$(Q)FUZZ_BUILD=$(FUZZ_BUILD) tests/run --jobs $(JOBS) --build $(BUILD) $(SUITES_FREE)

test-live: all units targets ## the tests against a real kernel (as root)
	$(Q)tests/run --jobs $(LIVE_JOBS) --again 2 --build $(BUILD) $(SUITES_ROOT)

check: deps ## packages, build, every suite (as root)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all units targets clang
	$(Q)FUZZ_BUILD=$(FUZZ_BUILD) tests/run --jobs $(LIVE_JOBS) --again 2 --build $(BUILD) $(SUITES_FREE) $(SUITES_ROOT)

MINUTES ?= 30
.PHONY: soak
soak: all units targets clang ## what proves by repetition, for MINUTES=30, all or SOAK="NAME…" (as root)
	$(Q)BUILD=$(BUILD) FUZZ_BUILD=$(FUZZ_BUILD) tests/soak $(MINUTES) $(SOAK)

.PHONY: reproducible
reproducible: ## what is committed, built twice in two places, is equal byte for byte
	$(Q)tests/run -v --build $(BUILD) tests/reproducible

.PHONY: vm
vm: deps all targets ## the tests on every other kernel, in emulated guests (as root)
	$(call need,$(DEPS_VM))
	$(Q)VM=all tests/run -v --build $(BUILD) --timeout 3600 vm

golden-update: $(BUILD)/memscope ## rewrite the golden expectations (read the diff like code)
	$(Q)MEMSCOPE=$(abspath $(BUILD))/memscope tests/golden/run --update > /dev/null && git diff --stat tests/golden

lint: ## layers, tree, words, format: of the sources alone, nothing is built
	$(Q)tests/run -v --jobs $(JOBS) --build $(BUILD) lint

# gcc's flow analysis sees uninitialised values and long numbers in what the sanitizers add.
SAN_CFLAGS := -O1 -g -fno-omit-frame-pointer -Wno-maybe-uninitialized -Wno-format-truncation
asan: clang ## unit, golden, replay and fuzz under AddressSanitizer and UndefinedBehaviorSanitizer
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)-asan CC=gcc \
		CFLAGS="$(SAN_CFLAGS)" \
		SAN="-fsanitize=address,undefined -fno-sanitize-recover=all" test-free
	$(Q)FUZZ_BUILD=$(FUZZ_BUILD) tests/run --jobs $(JOBS) --build $(BUILD)-asan fuzz
ubsan: ## unit, golden and replay tests under UndefinedBehaviorSanitizer alone
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)-ubsan CC=gcc \
		CFLAGS="$(SAN_CFLAGS)" \
		SAN="-fsanitize=undefined -fno-sanitize-recover=all" test-free
sanitized: ## all that live tests run, under both sanitizers: in BUILD-san
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)-san CC=gcc CFLAGS="$(SAN_CFLAGS)" \
		SAN="-fsanitize=address,undefined" $(BUILD)-san/memscope $(BUILD)-san/libmemscope-alloc.so \
		units targets
# The rooms that ask the kernel for nothing valgrind has never heard of (bpf, openat2).
valgrind: units ## unit tests of the rooms without BPF under valgrind
	$(Q)MEMSCOPE_VALGRIND=1 tests/run --build $(BUILD) --wrap "valgrind -q --error-exitcode=99 --leak-check=full" \
		$(addprefix unit/,base model elf import symbolize analyse render heap lang unwind)
test-free: $(BUILD)/memscope units
	$(Q)tests/run --jobs $(JOBS) --build $(BUILD) unit golden replay
# In no suite: not all that it says has been looked at.
analyzer: $(SKEL) $(PB).h $(BUILD)/gen/base/syscall_numbers.h $(BUILD)/gen/base/syscall_numbers32.h ## what gcc -fanalyzer says, but for what is known to be wrong (ANALYZE="FILE…")
	$(Q)tests/analyzer --jobs $(JOBS) --only "$(ANALYZE)" gcc $(ALL_CFLAGS)

# --- targets: small programs whose true profile is known; live tests and benchmarks run them ------

TFLAGS     := -O2 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-inline \
              -fno-optimize-sibling-calls -fno-builtin -pthread -Wall -Wextra -Werror \
              $(if $(findstring clang,$(shell $(CC) --version)),,-fno-ipa-icf \
              -fno-ipa-cp -fno-ipa-sra -fno-partial-inlining -fno-shrink-wrap)
# How a library's thread-local variables are found by descriptors: always on arm64, by an option here.
TLSDESC    := $(if $(filter x86_64,$(ARCH)),-mtls-dialect=gnu2)
# What is written in instructions of x86-64.
TARGET_X86 := tests/targets/heap_registers.c
TARGET_SRC := $(filter-out tests/targets/lib_% tests/targets/tc_% $(if $(filter x86_64,$(ARCH)),,$(TARGET_X86)),$(wildcard tests/targets/*.c tests/targets/*.cc))
# With jemalloc linked in, where its static library is: as it is, and as Rust's crates name it.
MULTIARCH    := $(shell $(CC) -print-multiarch)
JEMALLOC     := $(wildcard $(SYSROOT)/usr/lib/$(MULTIARCH)/libjemalloc_pic.a)
OBJCOPY      ?= objcopy
MUSL_BIN := $(addprefix $(BUILD)/targets/,alloc_truth_musl alloc_truth_musl_shared maps_musl cpu_split_musl_shared heap_own_musl heap_own_musl_shared \
            thread_context_musl_shared lib_otel_musl_shared.so)
OTHERS_BIN := $(if $(JEMALLOC),$(addprefix $(BUILD)/targets/,alloc_truth_jemalloc new_truth_jemalloc alloc_api_rjem je_allocs_jemalloc je_allocs_rjem busy_sites_jemalloc busy_sites_rjem \
                service_rjem service_rjem_static bad_alloc_jemalloc)) \
                $(if $(SYSROOT),,$(if $(shell command -v musl-gcc),$(MUSL_BIN)))
TARGET_BIN := $(patsubst tests/targets/%,$(BUILD)/targets/%,$(basename $(TARGET_SRC))) \
              $(patsubst tests/targets/%.c,$(BUILD)/targets/%.so,$(wildcard tests/targets/lib_*.c)) \
              $(BUILD)/targets/alloc_truth_static $(BUILD)/targets/service_static $(BUILD)/targets/maps_static $(BUILD)/targets/heap_own_static $(BUILD)/targets/unwind_mix_static $(BUILD)/tests/bpf/load $(BUILD)/tests/bench/inject $(BUILD)/targets/heap_graph_lsan $(OTHERS_BIN) \
              $(addprefix $(BUILD)/targets/unwind_depth_,static static-pie cet) \
              $(addprefix $(BUILD)/targets/lib_otel_,desc.so static.so initial.so)

$(BUILD)/targets/exec_before $(BUILD)/targets/exec_after $(BUILD)/targets/je_allocs: TFLAGS += -no-pie
$(BUILD)/targets/bare $(BUILD)/targets/lib_bare_first.so $(BUILD)/targets/lib_bare_second.so: \
	TFLAGS += -fomit-frame-pointer -momit-leaf-frame-pointer
# Its constructor runs before the program's entry point only in a library of its own.
$(BUILD)/targets/starts: $(BUILD)/targets/lib_starts.so
$(BUILD)/targets/starts: TLIBS = -Wl,--no-as-needed -L$(@D) -l:lib_starts.so -Wl,-rpath,'$$ORIGIN'

# Its allocator is a library's, as other allocators are.
$(BUILD)/targets/alloc_signals: $(BUILD)/targets/lib_safe.so
$(BUILD)/targets/alloc_signals: TLIBS = -Wl,--no-as-needed -L$(@D) -l:lib_safe.so -Wl,-rpath,'$$ORIGIN'

$(BUILD)/targets/alloc_jumps: TFLAGS += -fcoroutines

# As distributions build: no frame pointers, and whatever the optimizer likes.
UFLAGS     := -O2 -g -fomit-frame-pointer -momit-leaf-frame-pointer -pthread -Wall -Wextra -Werror \
              -Wno-alloca
$(BUILD)/targets/unwind_%: TFLAGS = $(UFLAGS)
$(BUILD)/targets/lib_unwind.so: TFLAGS = $(UFLAGS)
# Stubs that are bound when they are first called, in their original form.
$(BUILD)/targets/unwind_calls: $(BUILD)/targets/lib_unwind.so
$(BUILD)/targets/unwind_calls: TLIBS = -Wl,-z,lazy -L$(@D) -l:lib_unwind.so -Wl,-rpath,'$$ORIGIN'
$(BUILD)/targets/unwind_depth_static: UKIND := -static
$(BUILD)/targets/unwind_depth_static-pie: UKIND := -static-pie -fPIE
# On arm64 that is: return addresses are signed.
$(BUILD)/targets/unwind_depth_cet: UKIND := $(if $(filter x86_64,$(ARCH)),-fcf-protection=full,-mbranch-protection=standard)
$(addprefix $(BUILD)/targets/unwind_depth_,static static-pie cet): tests/targets/unwind_depth.cc tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(UFLAGS) $(UKIND) -std=c++17 -o $@ $<

# Static, so that it runs in a guest that has nothing else.
$(BUILD)/tests/bpf/load: tests/bpf/load.c
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CC) -O2 -std=gnu11 $(WARN) -static -o $@ $< -lbpf -lelf -lz

# A thread-local word, which is found in each of the ways that there are.
$(BUILD)/targets/thread_context: TLIBS = -Wl,--export-dynamic-symbol=otel_thread_ctx_v1
$(BUILD)/targets/lib_otel_desc.so: TFLAGS += $(TLSDESC) -DLARGE
$(BUILD)/targets/lib_otel_static.so: TFLAGS += $(TLSDESC)
$(BUILD)/targets/lib_otel_initial.so: TFLAGS += -DINITIAL
$(addprefix $(BUILD)/targets/lib_otel_,desc.so static.so initial.so): tests/targets/lib_otel.c
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(TFLAGS) -std=gnu11 -shared -fPIC -o $@ $<

# With musl, where it is; the kernel's headers go with any C library.
$(addprefix $(BUILD)/targets/,alloc_truth_musl alloc_truth_musl_shared): tests/targets/alloc_truth.c
$(BUILD)/targets/maps_musl: tests/targets/maps.c
$(addprefix $(BUILD)/targets/,heap_own_musl heap_own_musl_shared): tests/targets/heap_own.c
$(BUILD)/targets/cpu_split_musl_shared: tests/targets/cpu_split.c
$(BUILD)/targets/thread_context_musl_shared: tests/targets/thread_context.c
$(BUILD)/targets/thread_context_musl_shared: TFLAGS += -DNO_VARIABLE
$(BUILD)/targets/lib_otel_musl_shared.so: tests/targets/lib_otel.c
$(BUILD)/targets/lib_otel_musl_shared.so: TFLAGS += -shared -fPIC -DLARGE
$(MUSL_BIN): tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) $(BUILD)/gen/kernel && for d in linux asm-generic $(MULTIARCH)/asm; do \
		ln -sfn /usr/include/$$d $(BUILD)/gen/kernel/; done && \
		musl-gcc $(TFLAGS) $(if $(findstring _shared,$@),,-static) -std=gnu11 -D_GNU_SOURCE \
		-Dpvalloc=valloc -idirafter $(BUILD)/gen/kernel -o $@ $(filter %.c,$^)
$(BUILD)/targets/rjem.a: $(JEMALLOC)
	$(Q)mkdir -p $(@D) && $(OBJCOPY) $(foreach f,malloc calloc realloc free aligned_alloc posix_memalign memalign \
		valloc malloc_usable_size mallocx rallocx xallocx dallocx sdallocx,--redefine-sym $(f)=_rjem_$(f)) $< $@
$(BUILD)/targets/alloc_api_rjem: tests/targets/alloc_api.c $(BUILD)/targets/rjem.a tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)$(CC) $(TFLAGS) -std=gnu11 -rdynamic -o $@ $< -Wl,--whole-archive $(BUILD)/targets/rjem.a \
		-Wl,--no-whole-archive -ldl -lm -lstdc++
$(BUILD)/targets/alloc_truth_jemalloc: tests/targets/alloc_truth.c $(JEMALLOC) tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(TFLAGS) -std=gnu11 -o $@ $< $(JEMALLOC) -ldl -lm -lstdc++
$(BUILD)/targets/je_allocs_jemalloc: tests/targets/je_allocs.c $(JEMALLOC) tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(TFLAGS) -no-pie -rdynamic -std=gnu11 -o $@ $< $(JEMALLOC) -ldl -lm -lstdc++
$(BUILD)/targets/busy_sites_jemalloc: tests/targets/busy_sites.c $(JEMALLOC) tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(TFLAGS) -std=gnu11 -o $@ $< $(JEMALLOC) -ldl -lm -lstdc++
# As Rust's crates have it: an allocator that no symbol tells of once the program is stripped.
$(addprefix $(BUILD)/targets/,je_allocs_rjem busy_sites_rjem): $(BUILD)/targets/%_rjem: tests/targets/%.c $(BUILD)/targets/rjem.a tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)$(CC) $(TFLAGS) $(foreach f,malloc calloc realloc free,-D$(f)=_rjem_$(f)) -std=gnu11 -o $@ $< \
		$(BUILD)/targets/rjem.a -ldl -lm -lstdc++
$(BUILD)/targets/bad_alloc_jemalloc: tests/targets/bad_alloc.cc $(JEMALLOC) tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(TFLAGS) -std=c++17 -static -o $@ $< $(JEMALLOC) -ldl -lm
$(BUILD)/targets/service_rjem_static: TFLAGS += -static
$(addprefix $(BUILD)/targets/,service_rjem service_rjem_static): tests/targets/service.c $(BUILD)/targets/rjem.a tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)$(CC) $(TFLAGS) -DRJEM -std=gnu11 -o $@ $< $(BUILD)/targets/rjem.a -ldl -lm -lstdc++
$(BUILD)/targets/new_truth_jemalloc: tests/targets/new_truth.cc $(JEMALLOC) tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(TFLAGS) -std=c++17 -fsized-deallocation -o $@ $< $(JEMALLOC) -ldl -lm

# Says at its end what of its memory nothing refers to.
$(BUILD)/targets/%_lsan: tests/targets/%.cc
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(TFLAGS) -std=c++17 -fsanitize=leak -o $@ $<

$(BUILD)/targets/%_static: tests/targets/%.c tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(TFLAGS) -std=gnu11 -static -o $@ $<

$(BUILD)/targets/%.so: tests/targets/%.c
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(TFLAGS) -std=gnu11 -shared -fPIC -o $@ $<

$(BUILD)/targets/%: tests/targets/%.c tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(TFLAGS) -std=gnu11 -o $@ $< -ldl $(TLIBS)

$(BUILD)/targets/%: tests/targets/%.cc tests/targets/target.h
	$(call say,TARGET,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(TFLAGS) -std=c++17 -fsized-deallocation -o $@ $<

.PHONY: targets bench
targets: $(TARGET_BIN) ## build the programs that live tests and benchmarks measure

bench: deps-bench all targets ## what being profiled costs, against perf, bcc and bpftrace (as root)
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/bench.py $(BENCHFLAGS)
	$(Q)$(MAKE) BUILD=$(BUILD)/bench BPF_DEFS=-DMS_BENCH $(BUILD)/bench/memscope
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/walk.py
	$(Q)$(MAKE) bench-readers BENCHFLAGS=

.PHONY: bench-readers
bench-readers: all $(BUILD)/tests/bench/many_stacks ## reading large profiles, beside each format's own tool (FLAMEGRAPH=FOLDER: its Perl scripts, too)
	$(call need,$(DEPS_READERS))
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/readers.py $(BENCHFLAGS)

.PHONY: bench-mixed
bench-mixed: targets ## what a sample of frames of a language costs in the kernel, beside a native one of equal depth (as root)
	$(Q)$(MAKE) BUILD=$(BUILD)/bench BPF_DEFS=-DMS_BENCH $(BUILD)/bench/memscope
	$(Q)BUILD=$(abspath $(BUILD)) python3 tests/bench/mixed.py $(BENCHFLAGS)

.PHONY: bench-heap
bench-heap: $(BUILD)/tests/bench/heap_file ## a made-up heap of 10^8 blocks: time and anonymous memory of building, writing, opening and asking (BENCHFLAGS="BLOCKS FOLDER")
	$(Q)$< $(or $(BENCHFLAGS),100000000 /var/tmp)

.PHONY: bench-alloc
bench-alloc: deps-bench all targets ## what tracing every malloc and free costs, beside six others (as root)
	$(call need,$(DEPS_ALLOC))
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/alloc.py $(BENCHFLAGS)

.PHONY: bench-hard
bench-hard: all targets ## exact allocations of hard targets at full size: 10,000,000 live blocks, 100,000 stacks … (as root)
	$(Q)BUILD=$(abspath $(BUILD)) python3 tests/bench/hard.py $(BENCHFLAGS)

.PHONY: bench-foreign
bench-foreign: all ## large files of heaptrack, callgrind, perf and massif, beside their own readers
	$(Q)BUILD=$(BUILD) tests/bench/foreign.py $(BENCHFLAGS)

.PHONY: bench-sites
bench-sites: all ## who allocates, by memscope's tiers, heaptrack, jeprof and massif, side by side (as root)
	$(call need,$(DEPS_SITES))
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/sites.py $(BENCHFLAGS)

.PHONY: bench-sampled
bench-sampled: all targets ## what sampled allocations cost, and how true they are (as root)
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/sampled.py $(BENCHFLAGS)

.PHONY: bench-coverage
bench-coverage: all targets ## how often intervals of live runs hold the truth, by tier, and what diff says of equal ones (as root)
	$(Q)BUILD=$(abspath $(BUILD)) python3 tests/bench/coverage.py $(BENCHFLAGS)

.PHONY: bench-floods
bench-floods: all targets ## work left, in a run's first second, to a program that does nothing but switch (as root)
	$(Q)BUILD=$(BUILD) python3 tests/bench/floods.py $(BENCHFLAGS)

.PHONY: bench-serve
bench-serve: all targets ## what serve -a costs a host under loads, its memory, and the work left (as root)
	$(Q)BUILD=$(BUILD) python3 tests/bench/serve.py $(BENCHFLAGS)

.PHONY: bench-scale
bench-scale: all targets ## what serve -a takes of a host with many CPUs (by calculation), processes, and floods of them (as root; BENCHFLAGS="maps 512")
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/scale.py $(or $(BENCHFLAGS),maps)

.PHONY: bench-fleet
bench-fleet: all ## what the metrics of 1,000 nodes take of Prometheus: series, samples, memory, disk (as root, ten minutes)
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/fleet.py $(BENCHFLAGS)

.PHONY: bench-inject
bench-inject: all targets ## thousands of times into a busy program and out again, and killed on the way (as root)
	$(Q)BUILD=$(BUILD) MEMSCOPE_INJECT_CYCLES=3000 MEMSCOPE_INJECT_KILLS=300 python3 tests/live/test_inject.py \
		'a_busy_program*' 'a_memscope_that_is_killed*'

.PHONY: bench-inprocess
bench-inprocess: all targets ## what recording every allocation costs: by the injected library, probes, memleak, heaptrack, jemalloc (as root)
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/inprocess.py $(BENCHFLAGS)

.PHONY: bench-heap-pause
bench-heap-pause: all targets ## how long a snapshot stops a process, by memory, pages and threads (as root)
	$(Q)BUILD=$(abspath $(BUILD)) python3 tests/bench/heap_pause.py $(BENCHFLAGS)

.PHONY: bench-growth
bench-growth: all targets ## what counting resident pages costs at a page fault (as root)
	$(Q)BUILD=$(BUILD) python3 tests/bench/growth.py $(BENCHFLAGS)

.PHONY: bench-governor
bench-governor: all targets ## what a default run costs programs that live in their allocator, against the limit (as root)
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/governor.py $(BENCHFLAGS)

.PHONY: bench-names
bench-names: deps-names $(NAMES_BIN) ## what naming 100,000 places and a host's files costs, beside others
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/names.py $(BENCHFLAGS)

.PHONY: bench-complete
bench-complete: all targets ## how many stacks are proven complete, by program and source, with intervals (as root)
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/complete.py $(BENCHFLAGS)

.PHONY: bench-answers
bench-answers: all ## small services whose trouble is known, and what the last sentence says of each: a confusion matrix (as root)
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/answers/answers.py --all $(BENCHFLAGS)

.PHONY: bench-tables
bench-tables: all $(BUILD)/tests/bench/tables ## what unwind tables and the start of a run cost (as root)
	$(Q)BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/tables.py $(BENCHFLAGS)

.PHONY: bench-report
bench-report: all $(BUILD)/tests/bench/report_page ## report.html of 10 minutes and 10,000 sites: its size, and its speed in a browser
	$(Q)BUILD=$(abspath $(BUILD)) MEMSCOPE=$(abspath $(BUILD))/memscope node tests/bench/report.mjs $(BENCHFLAGS)

# --- the rest --------------------------------------------------------------------------------------

.PHONY: demo
demo: deps-demo ## packages, build, profile redis-server under load (as root)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all
	$(Q)tests/demo/redis $(BUILD)/memscope

.PHONY: format format-check
format: ## apply .clang-format to every .c file (headers are laid out by hand, in columns)
	$(Q)git ls-files 'user/*.c' 'bpf/*.c' 'tests/*.c' | xargs clang-format -i

.PHONY: bpf-objects vmlinux
bpf-objects: $(BPF_OBJ)

vmlinux: ## refresh vmlinux/ARCH/vmlinux.h, from this kernel or KERNEL=IMAGE of another
	$(Q)vmlinux/refresh $(VMARCH) $(KERNEL)

.PHONY: clean help
clean: ## remove everything that was built
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-ubsan $(BUILD)-san $(BUILD)-static $(FUZZ_BUILD) memscope libmemscope-alloc.so

help: ## this list
	@sed -n 's/^\([a-zA-Z%-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | sort | \
		while IFS="	" read -r t d; do printf '  %-14s %s\n' "$$t" "$$d"; done
	@echo "  V=1 shows the commands; BUILD=DIR builds elsewhere; CC=clang uses clang"
