# cl_driver: see README.md. Everything that is made goes to build/.
PYTHON ?= python3
VENV := build/venv/bin/python
BUILD_FLAGS ?= --allow-missing

export OCL_ICD_VENDORS := $(CURDIR)/build/vendors/

.PHONY: setup
setup: build/venv/.made build/vendors/cl_driver.icd
	@$(VENV) native_shim/build.py $(BUILD_FLAGS)

build/venv/.made: pyproject.toml
	$(PYTHON) -m venv build/venv
	$(VENV) -m pip install --quiet --disable-pip-version-check 'llvmlite>=0.48' 'cffi>=1.16' 'pytest>=8' numpy ruff
	echo '$(CURDIR)' > "$$($(VENV) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/cl_driver.pth"
	touch $@

build/vendors/cl_driver.icd:
	mkdir -p build/vendors
	printf '%s\n' '$(CURDIR)/build/lib/libcl_driver.so' > $@
