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

PKGS     := libbpf libelf zlib libprotobuf-c libcjson
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
            -Wvla -Wno-unused-parameter -Wno-missing-field-initializers -Werror
CFLAGS   ?= -O2 -g
ALL_CFLAGS = $(CFLAGS) -std=gnu11 -D_GNU_SOURCE $(WARN) $(SAN) -Iuser -Ibpf -I$(BUILD)/gen \
            $(shell pkg-config --cflags $(PKGS)) -MMD -MP
LDLIBS    = $(shell pkg-config --libs $(PKGS)) -liberty

BPF_SRC  := $(wildcard bpf/*.bpf.c)
BPF_OBJ  := $(BPF_SRC:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
SKEL     := $(BUILD)/gen/memscope.skel.h
PB       := $(BUILD)/gen/profile.pb-c
ASSETS   := $(wildcard user/render/assets/*)
ROOMS    := $(filter-out user/cmd,$(patsubst %/,%,$(wildcard user/*/)))
LIB_SRC  := $(foreach r,$(ROOMS),$(wildcard $(r)/*.c))
LIB_OBJ  := $(LIB_SRC:user/%.c=$(BUILD)/user/%.o) $(BUILD)/gen/profile.pb-c.o $(BUILD)/gen/assets.o
CMD_SRC  := user/main.c $(wildcard user/cmd/*.c)
CMD_OBJ  := $(CMD_SRC:user/%.c=$(BUILD)/user/%.o)

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: all
all: memscope ## the program (default)

memscope: $(BUILD)/memscope
	$(Q)cp -f $< $@

$(BUILD)/memscope: $(CMD_OBJ) $(BUILD)/libmemscope.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libmemscope.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/user/%.o: user/%.c | $(SKEL) $(PB).h
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -c -o $@ $<

# --- generated: BPF objects joined into one skeleton, protobuf code, embedded assets -------------

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h bpf/*.def) vmlinux/$(VMARCH)/vmlinux.h
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Werror \
		-Wno-unused-parameter -Wno-missing-field-initializers -Wno-unused-function \
		-D__TARGET_ARCH_$(BPFARCH) -Ibpf -Ivmlinux/$(VMARCH) -c -o $@ $<

$(BUILD)/bpf/memscope.bpf.o: $(BPF_OBJ)
	$(call say,GENOBJ,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(SKEL): $(BUILD)/bpf/memscope.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name memscope_bpf > $@

$(PB).c $(PB).h &: user/model/profile.proto
	$(call say,PROTOC,$<)
	$(Q)mkdir -p $(@D) && protoc-c --proto_path=user/model --c_out=$(BUILD)/gen $<

$(BUILD)/gen/profile.pb-c.o: $(PB).c
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(SAN) -I$(BUILD)/gen -c -o $@ $<

# Each file of user/render/assets/ becomes asset_NAME_EXT[] and asset_NAME_EXT_len.
$(BUILD)/gen/assets.c: $(ASSETS)
	$(call say,EMBED,$@)
	$(Q)mkdir -p $(@D) && { for f in $(ASSETS); do n=asset_$$(basename $$f | tr '.-' '__'); \
		printf 'const char %s[] = {\n' $$n; od -An -v -tu1 $$f | sed 's/ *\([0-9][0-9]*\)/\1,/g'; \
		printf '0};\nconst unsigned %s_len = sizeof(%s) - 1;\n' $$n $$n; done; } > $@

$(BUILD)/gen/assets.o: $(BUILD)/gen/assets.c
	$(Q)$(CC) $(CFLAGS) -w -c -o $@ $<

-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d)

# --- tests ---------------------------------------------------------------------------------------

UNIT_SRC := $(wildcard tests/unit/*/*.c)
UNIT_BIN := $(UNIT_SRC:tests/%.c=$(BUILD)/tests/%)

$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libmemscope.a
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -o $@ $< $(BUILD)/libmemscope.a $(LDLIBS) -lcmocka

.PHONY: units
units: $(UNIT_BIN) ## build the unit tests

-include $(UNIT_BIN:=.d)
