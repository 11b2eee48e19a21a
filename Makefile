# cl_driver: see README.md. Everything that is made goes to build/.
PYTHON ?= python3
PYTEST_ARGS ?=
BUILD_FLAGS ?=
INTEL ?=
BENCH_ARGS ?=
VENV := build/venv/bin/python
SHIM := build/lib/libcl_driver.so

# The driver of this working tree, and no other.
export OCL_ICD_VENDORS := $(CURDIR)/build/vendors/
unexport OCL_ICD_FILENAMES OPENCL_VENDOR_PATH

.PHONY: run driver setup packages test test-llvmlite test-levels check bench-check test-packages pages bench zoo sanitize peers conformance
.PHONY: core dist test-release lint clean

run: driver build/demo
	@clinfo -l
	@clinfo | grep -E '^  (Device Version|Driver Version|Device OpenCL C Version|Max compute units|Max work group size|Global memory size) ' || true
	@build/demo

driver: packages build/venv/.made build/vendors/cl_driver.icd
	@$(VENV) native_shim/build.py $(BUILD_FLAGS)

# The driver, and what its tests and scripts need.
setup: driver build/venv/.test

packages:
	@native_shim/packages.sh $(PYTHON)

test-packages:
	@native_shim/packages.sh $(PYTHON) test

# What the package and its tests need stands in pyproject.toml alone.
requirements = $(VENV) -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  print("\n".join($(1)))' > build/requirements.txt && \
  $(VENV) -m pip install --quiet --disable-pip-version-check -r build/requirements.txt

build/venv/.test: build/venv/.made
	@echo 'build/venv: adding what the tests need'
	@$(call requirements,p["optional-dependencies"]["test"])
	@touch $@

build/venv/.made: pyproject.toml | packages
	@echo 'build/venv: making a virtual environment with the packages of pyproject.toml'
	@$(PYTHON) -m venv build/venv || { echo 'needs venv: apt install python3-venv' >&2; exit 1; }
	@$(call requirements,p["dependencies"])
	@echo '$(CURDIR)' > "$$($(VENV) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/cl_driver.pth"
	@printf '#!%s\nimport sys\nfrom cl_driver.cli import main\nsys.exit(main())\n' '$(CURDIR)/$(VENV)' > build/venv/bin/cl-driver
	@chmod +x build/venv/bin/cl-driver
	@touch $@

build/vendors/cl_driver.icd:
	@mkdir -p build/vendors
	@printf '%s\n' '$(CURDIR)/$(SHIM)' > $@

build/demo: icd/demo.c | driver
	@echo 'build/demo: compiling a first program'
	@$${CC:-cc} -std=c11 -O2 -Wall -Wextra -o $@ $< -lOpenCL

# A test runner on each CPU; WORKERS=0 for one process, in which a debugger works.
WORKERS ?= auto
# Tests as pytest compiles them are kept, out of the tree.
BYTECODE := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/build/pycache
PYTEST = $(BYTECODE) $(VENV) -m pytest -q --durations=20 --durations-min=5 $(PYTEST_ARGS)

# The loader's tests once with the control plane embedded, once with it in a process of its own; there what the
# log says of the errors that they provoke is looked at, too.
test: test-packages setup
	$(PYTEST) -n $(WORKERS) -m "not clock and not release" tests
	@mkdir -p build/test && rm -f $(ERRORS)
	CL_DRIVER_RUNTIME=process CL_DRIVER_LOG=errors CL_DRIVER_LOG_FILE=$(CURDIR)/$(ERRORS) \
	  $(PYTEST) -n $(WORKERS) -m "not clock and not long and not release" \
	  $(patsubst %,--ignore=tests/loader/%,$(OF_CODE)) $(patsubst %,tests/loader/%,$(PROVOKE_ERRORS))
	$(VENV) -m tests.loader.errors.messages $(ERRORS)
	CL_DRIVER_RUNTIME=process $(PYTEST) -n $(WORKERS) -m "not clock and not long and not release" \
	  $(patsubst %,--ignore=tests/loader/%,$(PROVOKE_ERRORS) $(OF_CODE)) \
	  $(patsubst %,tests/loader/%,$(IN_A_PROCESS))
	$(PYTEST) -m clock $(TIMED)

# Without the others nothing else is collected first.
TIMED = $(shell grep -rl --include='test_*.py' 'mark\.clock' tests)
ERRORS := build/test/errors.log
# What depends on where Python is: calls, and all that they ask of it.
PROVOKE_ERRORS = command_buffers core errors extensions images programs/test_il.py
# These are about what code computes, which is the same in both.
OF_CODE = core/test_functions.py extensions/test_initialize_memory.py images/test_blocks.py \
  launches/test_group_code.py launches/test_groups.py launches/test_image_code.py launches/test_launch_code.py \
  launches/test_value_code.py programs/test_long_constants.py
IN_A_PROCESS = check launches profile programs tracing test_debugger.py test_odd_files.py test_signals.py

# What LLVM compiles, once more with llvmlite's in place of clang's.
BY_LLVM = builtins codegen/access codegen/atomic codegen/ops codegen/simd images jit
test-llvmlite: test-packages setup
	CL_DRIVER_LLVM=llvmlite $(PYTEST) -n $(WORKERS) -m "not clock and not long" $(patsubst %,tests/runtime/%,$(BY_LLVM))

# The code of kernels for CPUs of the x86-64 levels below this machine's, the same whichever CPU is there: one
# with AVX2 and no masks (most of what is made here anyway where AVX-512 is missing), one with SSE4.2, which
# differs in accesses and instructions. The rest of tests/runtime makes code for CPUs that the tests name, or
# for none. The lowest level's is compiled by llvmlite's LLVM in place of clang's.
LEVELS ?= $(shell grep -qw avx512f /proc/cpuinfo && echo x86-64-v3) $(shell grep -qw avx2 /proc/cpuinfo && echo x86-64-v2)
AT_x86-64-v3 = codegen images passes program
AT_x86-64-v2 = $(BY_LLVM)
LLVM_x86-64-v2 = llvmlite
test-levels: test-packages setup $(addprefix test-level-,$(LEVELS))

test-level-%:
	CL_DRIVER_LLVM=$(LLVM_$*) CL_DRIVER_TEST_CPU=$* $(PYTEST) -n $(WORKERS) -m "not clock and not long" \
	  $(patsubst %,tests/runtime/%,$(AT_$*))

# What a change is checked with while one works on it.
check: test-packages setup
	$(PYTEST) -n $(WORKERS) -m "not clock and not long and not network" tests

# What compares times, with nothing beside it.
bench-check: test-packages setup
	$(PYTEST) -m clock $(TIMED)

# Beside Debian's PoCL if that is installed, and Intel's runtime: make bench INTEL=/path/to/environment/lib
BENCH_PEERS := $(if $(INTEL),--intel $(INTEL)) $(if $(wildcard /etc/OpenCL/vendors/pocl.icd),--pocl)
bench: setup build/venv/.bench
	$(VENV) -m tests.bench.throughput $(BENCH_PEERS) $(BENCH_ARGS)
	$(VENV) tests/bench/latency.py $(BENCH_PEERS)

# Public programs beside the peers, which nobody tuned for: tests/zoo/README.md
ZOO_ARGS ?=
zoo: setup
	$(VENV) -m tests.zoo $(if $(ZOO),--folder "$(ZOO)") $(BENCH_PEERS) $(ZOO_ARGS)

build/venv/.bench: build/venv/.test
	@$(call requirements,p["optional-dependencies"]["bench"])
	@touch $@

# The shim with ThreadSanitizer and with AddressSanitizer: the data plane alone, then through the loader.
sanitize: setup
	$(VENV) -m pytest -q $(PYTEST_ARGS) tests/runtime/test_data_plane.py
	@for kind in thread address; do \
	  $(VENV) native_shim/build.py $(BUILD_FLAGS) --sanitize $$kind && \
	  CL_DRIVER_TEST_SANITIZE=$$kind $(VENV) -m pytest -q $(PYTEST_ARGS) tests/loader -m sanitize || exit 1; \
	done

# Other projects' suites on this driver: minutes each (tests/peers/README.md).
peers: setup
	$(VENV) tests/peers/clfft.py
	$(VENV) tests/peers/clblast.py
	$(VENV) tests/peers/pyopencl.py
	$(VENV) tests/peers/piglit.py

# A build of the Khronos CTS that is there already: make conformance CTS=/path/to/build [SET=] [SUITES=]
# [CONFORMANCE_ARGS="--resume --compare"] (conformance/README.md)
SET ?= quick
CONFORMANCE_ARGS ?=
conformance: setup
	@[ -n "$(CTS)" ] || { echo "CTS=/path/to/build of the Khronos CTS; without one: make core"; exit 2; }
	$(VENV) -m conformance.cts "$(CTS)" --set $(SET) --suites "$(SUITES)" $(CONFORMANCE_ARGS)

# What stands in for the CTS's core suites without a build of it: tests/core.toml
core: setup
	$(VENV) -m pytest -q $(PYTEST_ARGS) -m core tests

# What the compiler makes of one kernel, into cl_driver/ARCHITECTURE.md: after a change that is meant.
pages: setup
	$(VENV) -m tests.pages
	$(VENV) -m conformance.features

# Before a release, besides make test: native_shim/README.md
test-release: test-packages setup test-llvmlite
	$(PYTEST) -n $(WORKERS) -m release tests

# The wheels and the sdist, into build/dist: native_shim/README.md
dist: packages build/dist-venv/.made
	build/dist-venv/bin/python native_shim/dist.py $(DIST_ARGS)

build/dist-venv/.made: pyproject.toml | packages
	$(PYTHON) -m venv build/dist-venv
	@build/dist-venv/bin/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
	  print("\n".join(p["dependency-groups"]["dist"]))' > build/requirements-dist.txt
	build/dist-venv/bin/python -m pip install --quiet --disable-pip-version-check -r build/requirements-dist.txt
	@touch $@

lint: setup
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy
	@format=$$(command -v clang-format clang-format-22 | head -n 1); if [ -n "$$format" ]; then \
	  $$format --dry-run -Werror native_shim/src/*/*.[ch] native_shim/embed/*.c \
	    native_shim/clang/*.[ch] native_shim/holder/*.c icd/*.c; fi

clean:
	rm -rf build
