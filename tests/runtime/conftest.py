import pytest

from cl_driver.service import client


@pytest.fixture
def make_service(monkeypatch, tmp_path):
    """Makes services with settings; each has its cache in tmp_path unless told otherwise."""
    made = []

    def make(**settings) -> client.Service:
        monkeypatch.setenv("CL_DRIVER_CACHE_DIR", str(tmp_path / "cache"))
        for name, value in settings.items():
            monkeypatch.setenv(f"CL_DRIVER_{name}", str(value))
        made.append(client.Service())
        return made[-1]

    yield make
    for service in made:
        service.unload()
